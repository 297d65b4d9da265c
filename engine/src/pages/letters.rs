//! Text in fewer bits: four for a letter that is frequent, six for one that is less so, ten for any
//! other byte. On catalogue pages an eighth larger than the best code for single letters would be,
//! and nothing to build for it.

/// Letters of four bits, and of six.
const FREQUENT: usize = 8;
const KNOWN: usize = 24;

/// Which letters are frequent in text of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Letters {
    known: [u8; KNOWN],
    /// By byte: its bits, and above them how many those are.
    codes: [u16; 256],
}

impl Letters {
    /// Learns from a text.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut counts = [0_u32; 256];
        for byte in text {
            counts[usize::from(*byte)] += 1;
        }
        let mut bytes: Vec<u8> = (0..=255).collect();
        bytes.sort_by_key(|byte| std::cmp::Reverse(counts[usize::from(*byte)]));
        let mut known = [0; KNOWN];
        known.copy_from_slice(&bytes[..KNOWN]);
        let mut codes = std::array::from_fn(|byte| 10 << 12 | (byte as u16) << 2 | 3);
        for (rank, byte) in known.iter().enumerate() {
            codes[usize::from(*byte)] = match rank {
                0..FREQUENT => 4 << 12 | (rank as u16) << 1,
                _ => 6 << 12 | ((rank - FREQUENT) as u16) << 2 | 1,
            };
        }
        Self { known, codes }
    }

    /// Appends the frequent letters and the text in their bits.
    pub(super) fn write(&self, text: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.known);
        let mut end = out.len();
        out.resize(end + text.len() * 10 / 8 + 8, 0);
        let (mut bits, mut count) = (0_u64, 0);
        for four in text.chunks(4) {
            for byte in four {
                let code = self.codes[usize::from(*byte)];
                bits |= u64::from(code & 0xfff) << count;
                count += u32::from(code >> 12);
            }
            // All of them are written, and those that fill no byte once more with the next.
            out[end..end + 8].copy_from_slice(&bits.to_le_bytes());
            end += (count / 8) as usize;
            bits >>= count & !7;
            count &= 7;
        }
        out.truncate(end + count.div_ceil(8) as usize);
    }
}

/// Text of so many bytes again; nothing if there are fewer.
pub(super) fn read(written: &[u8], size: usize) -> Option<Vec<u8>> {
    let (known, packed) = written.split_first_chunk::<KNOWN>()?;
    // A size that is a lie must not cost memory: no letter has fewer than four bits.
    if size > packed.len() * 2 {
        return None;
    }
    let mut text = Vec::with_capacity(size);
    let mut packed = packed.iter();
    let (mut bits, mut count) = (0_u64, 0);
    while text.len() < size {
        while count <= 56 {
            let Some(byte) = packed.next() else { break };
            bits |= u64::from(*byte) << count;
            count += 8;
        }
        let (letter, length) = match bits & 3 {
            3 => ((bits >> 2) as u8, 10),
            1 => (known[FREQUENT + (bits >> 2 & 15) as usize], 6),
            _ => (known[(bits >> 1 & 7) as usize], 4),
        };
        if length > count {
            return None;
        }
        text.push(letter);
        bits >>= length;
        count -= length;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_read_as_it_was_written() {
        let plain = b"the quick brown fox jumps over the lazy dog and eats all of its food; ";
        let all: Vec<u8> = (0..=255).collect();
        let mixed = [&plain[..], &all, &[0; 99]].concat();
        for letters in [&plain[..], b"", &all, &[7; 9]].map(Letters::of) {
            for text in [&plain[..], &all, &mixed, &plain.repeat(50), &[255; 999]] {
                for length in (0..text.len().min(120)).chain([text.len()]) {
                    let mut written = Vec::new();
                    letters.write(&text[..length], &mut written);
                    assert_eq!(read(&written, length).as_deref(), Some(&text[..length]));
                    let more = read(&written, length + 3);
                    assert!(more.is_none_or(|more| more.len() == length + 3));
                    assert_eq!(read(&written, written.len() * 2), None);
                    for cut in 0..written.len().min(60) {
                        let less = read(&written[..cut], length);
                        assert!(less.is_none_or(|less| less.len() == length));
                    }
                }
            }
        }
        let mut written = Vec::new();
        Letters::of(plain).write(&plain.repeat(50), &mut written);
        assert!(written.len() < plain.len() * 50 * 7 / 10, "{}", written.len());
        assert_eq!(read(&written, usize::MAX), None);
        assert_eq!(read(&written[..5], 0), None);
    }
}
