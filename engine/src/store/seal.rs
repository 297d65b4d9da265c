//! Sealed records: bytes behind a checksum. It detects accidental damage. It is no protection
//! against an attacker with write access.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::ledger::{TableError, TableResult};

/// Size of a checksum.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// The checksum of bytes that are stored under a number, such as their row id. It detects bytes that
/// have been moved to another number.
pub(crate) fn checksum(number: i64, bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    xxh3_64_with_seed(bytes, number as u64).to_le_bytes()
}

/// A number derived from values that are stored beside a record, so that its checksum covers them.
pub(crate) fn number_of(values: &[&[u8]]) -> i64 {
    values.iter().fold(0, |seed, value| xxh3_64_with_seed(value, seed)) as i64
}

/// Puts the checksum before bytes that are stored under a number.
pub(crate) fn seal_numbered(number: i64, bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(CHECKSUM_BYTES + bytes.len());
    sealed.extend_from_slice(&checksum(number, bytes));
    sealed.extend_from_slice(bytes);
    sealed
}

/// The bytes behind the checksum, if it matches them and the number.
pub(crate) fn unseal_numbered(number: i64, sealed: &[u8]) -> Option<&[u8]> {
    let (own, bytes) = sealed.split_at_checked(CHECKSUM_BYTES)?;
    (own == checksum(number, bytes)).then_some(bytes)
}

/// Puts the checksum before bytes without a number.
pub(crate) fn seal_bytes(bytes: &[u8]) -> Vec<u8> {
    seal_numbered(0, bytes)
}

/// The bytes behind the checksum. `what` names the record in the error.
pub(crate) fn unseal_bytes<'a>(sealed: &'a [u8], what: &str) -> TableResult<&'a [u8]> {
    unseal_numbered(0, sealed).ok_or_else(|| TableError::new(format!("{what} is damaged")))
}

/// Encodes a value behind its checksum.
pub(crate) fn seal<T: Serialize>(value: &T) -> TableResult<Vec<u8>> {
    let mut sealed = postcard::to_extend(value, vec![0; CHECKSUM_BYTES])
        .map_err(|error| TableError::new(format!("cannot encode a record: {error}")))?;
    let own = checksum(0, &sealed[CHECKSUM_BYTES..]);
    sealed[..CHECKSUM_BYTES].copy_from_slice(&own);
    Ok(sealed)
}

/// Decodes a sealed value. `what` names the record in the error.
pub(crate) fn unseal<T: DeserializeOwned>(sealed: &[u8], what: &str) -> TableResult<T> {
    postcard::from_bytes(unseal_bytes(sealed, what)?)
        .map_err(|error| TableError::new(format!("cannot decode {what}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let sealed = seal(&(7_u64, String::from("words"))).unwrap();
        assert_eq!(unseal::<(u64, String)>(&sealed, "it").unwrap().1, "words");
        for at in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[at] ^= 4;
            assert!(unseal::<(u64, String)>(&bad, "it").is_err());
        }
        assert!(unseal_bytes(b"short", "it").is_err());
        let sealed = seal_numbered(7, b"words");
        assert_eq!(unseal_numbered(7, &sealed), Some(&b"words"[..]));
        assert_eq!(unseal_numbered(8, &sealed), None);
        assert_eq!(unseal_numbered(7, &sealed[..9]), None);
        let sealed = seal_numbered(7, &(0..77).collect::<Vec<u8>>());
        for bit in 0..sealed.len() * 8 {
            let mut bad = sealed.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal_numbered(7, &bad), None, "bit {bit}");
        }
    }
}
