//! A blocked Bloom filter for a run: "no" is certain and spares a lookup on disk.

/// Bits of a line, which is one cache line of the processor.
const LINE_BITS: u64 = 512;
/// Bits that are set per key.
const PROBES: u32 = 6;

/// The keys that a run may hold. Keys are hashes, so their own bits select the bits of the filter. Lines
/// are in the order of the keys, so a sorted run fills its filter sequentially.
#[derive(Debug, Default)]
pub(super) struct BloomFilter {
    lines: Vec<[u64; 8]>,
}

impl BloomFilter {
    /// An empty filter of this size. A filter without bits answers "maybe" to every key.
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
