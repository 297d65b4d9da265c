//! Marks by which damage to saved pages is found.

use crate::store::checksum::{kept, sum};

/// Bytes of a mark.
pub(super) const MARK: usize = 8;
/// Before the first part; anything will do, as long as it stays.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;

/// A mark over parts, each with its length.
pub(super) fn mark_of(parts: &[&[u8]]) -> [u8; MARK] {
    kept(parts.iter().fold(FIRST, |before, part| sum(before, part)))
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
