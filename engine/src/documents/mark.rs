//! Marks by which damage to saved pages is found: against accidents only, and much quicker than a
//! hash that withstands malice.

/// Bytes of a mark.
pub(super) const MARK: usize = 8;

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A mark over parts, each with its length.
pub(super) fn mark_of(parts: &[&[u8]]) -> [u8; MARK] {
    let mark = parts.iter().fold(ODD, |mark, part| sum(mark, part));
    (mark ^ (mark >> 32)).to_le_bytes()
}

/// Whatever changes one word changes the sum.
fn stir(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(ODD).rotate_left(29)
}

/// Four sums side by side, put together at the end.
fn sum(before: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let (fours, few) = words.as_chunks::<4>();
    let mut sums = [1_u64, 2, 3, 4];
    for four in fours {
        for (sum, word) in sums.iter_mut().zip(four) {
            *sum = stir(*sum, u64::from_le_bytes(*word));
        }
    }
    let mut sum = stir(before, bytes.len() as u64);
    for word in sums.into_iter().chain(few.iter().map(|word| u64::from_le_bytes(*word))) {
        sum = stir(sum, word);
    }
    rest.iter().fold(sum, |sum, byte| stir(sum, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_changes_the_mark() {
        let bytes: Vec<u8> = (0..100).map(|number| (number * 7) as u8).collect();
        for length in 0..bytes.len() {
            let own = mark_of(&[&bytes[..length], b"beside"]);
            for at in 0..length {
                for bit in 0..8 {
                    let mut bad = bytes[..length].to_vec();
                    bad[at] ^= 1 << bit;
                    assert_ne!(mark_of(&[&bad, b"beside"]), own);
                }
            }
            assert_ne!(mark_of(&[&bytes[..=length], b"beside"]), own);
            assert_ne!(mark_of(&[&bytes[..length], b"besides"]), own);
        }
        assert_ne!(mark_of(&[b"ab", b"c"]), mark_of(&[b"a", b"bc"]));
        assert_ne!(mark_of(&[&[0; 64]]), mark_of(&[&[0; 72]]));
    }
}
