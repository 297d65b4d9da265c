//! A filter before a run: a "no" is certain and spares a look at the disk, a "maybe" is looked up.

/// Bits of one line, which lies in one line of the processor's cache.
const LINE_BITS: u64 = 512;
/// Bits set for each key.
const PROBES: u32 = 6;

/// Which keys a run may hold. Keys are hashes, so their own bits serve as places; lines follow
/// their order, so a run written in order fills its filter in order.
#[derive(Debug, Default)]
pub(super) struct BloomFilter {
    lines: Vec<[u64; 8]>,
}

impl BloomFilter {
    /// An empty filter with so many bits; with none it says "maybe" to everything.
    pub(super) fn new(bits: u64) -> Self {
        Self { lines: vec![[0; 8]; (bits / LINE_BITS) as usize] }
    }

    pub(super) fn add(&mut self, key: u128) {
        let at = self.line_of(key);
        if let Some(line) = self.lines.get_mut(at) {
            for (word, bit) in places(key) {
                line[word] |= bit;
            }
        }
    }

    pub(super) fn may_hold(&self, key: u128) -> bool {
        let line = self.lines.get(self.line_of(key));
        line.is_none_or(|line| places(key).all(|(word, bit)| line[word] & bit != 0))
    }

    fn line_of(&self, key: u128) -> usize {
        (((key >> 64) * self.lines.len() as u128) >> 64) as usize
    }
}

fn places(key: u128) -> impl Iterator<Item = (usize, u64)> {
    let low = key as u64;
    (0..PROBES).map(move |probe| {
        let place = low >> (probe * 9);
        ((place >> 6) as usize & 7, 1 << (place & 63))
    })
}
