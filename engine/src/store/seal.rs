//! Records that know whether they are whole: a value, encoded, behind a sum of its bytes. It is against
//! accidents: whoever can write these files can write another sum.

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::ledger::{TableError, TableResult};

/// Bytes of a mark.
pub(crate) const MARK: usize = 8;

fn mark(bytes: &[u8]) -> [u8; MARK] {
    mark_numbered(0, bytes)
}

/// Bytes behind a mark that vouches for what stands beside them, too.
pub(crate) fn seal_beside(beside: &[&[u8]], bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(MARK + bytes.len());
    sealed.extend_from_slice(&mark_beside(beside, bytes));
    sealed.extend_from_slice(bytes);
    sealed
}

fn mark_beside(beside: &[&[u8]], bytes: &[u8]) -> [u8; MARK] {
    let seed = beside.iter().fold(0, |seed, part| xxh3_64_with_seed(part, seed));
    xxh3_64_with_seed(bytes, seed).to_le_bytes()
}

/// The bytes behind the mark, if they and what stands beside them are what was sealed.
pub(crate) fn unseal_beside<'a>(
    sealed: &'a [u8],
    beside: &[&[u8]],
    what: impl FnOnce() -> String,
) -> TableResult<&'a [u8]> {
    match sealed.split_at_checked(MARK) {
        Some((own, bytes)) if own == mark_beside(beside, bytes) => Ok(bytes),
        _ => {
            Err(TableError { message: format!("{} is not what was written", what()), full: false })
        }
    }
}

/// Puts a mark before bytes that vouches for the number they are kept under, too.
pub(crate) fn seal_numbered(number: i64, bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(MARK + bytes.len());
    sealed.extend_from_slice(&mark_numbered(number, bytes));
    sealed.extend_from_slice(bytes);
    sealed
}

/// The bytes behind the mark, if they are what was sealed under that number.
pub(crate) fn unseal_numbered(number: i64, sealed: &[u8]) -> Option<&[u8]> {
    let (own, bytes) = sealed.split_at_checked(MARK)?;
    (own == mark_numbered(number, bytes)).then_some(bytes)
}

pub(crate) fn mark_numbered(number: i64, bytes: &[u8]) -> [u8; MARK] {
    xxh3_64_with_seed(bytes, number as u64).to_le_bytes()
}

/// Puts a mark before bytes.
pub(crate) fn seal_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(MARK + bytes.len());
    sealed.extend_from_slice(&mark(bytes));
    sealed.extend_from_slice(bytes);
    sealed
}

/// Encodes a value behind its mark.
pub(crate) fn seal<T: Serialize>(value: &T) -> TableResult<Vec<u8>> {
    let mut sealed = vec![0; MARK];
    sealed = postcard::to_extend(value, sealed).map_err(|error| TableError {
        message: format!("record could not be encoded: {error}"),
        full: false,
    })?;
    let mark = mark(&sealed[MARK..]);
    sealed[..MARK].copy_from_slice(&mark);
    Ok(sealed)
}

/// The bytes behind the mark, if they are the ones that were sealed.
pub(crate) fn unseal_bytes<'a>(sealed: &'a [u8], what: &str) -> TableResult<&'a [u8]> {
    let damaged = || TableError { message: format!("{what} is not what was written"), full: false };
    unsealed(sealed).ok_or_else(damaged)
}

/// The same without words, for who has its own.
pub(crate) fn unsealed(sealed: &[u8]) -> Option<&[u8]> {
    let (own, bytes) = sealed.split_at_checked(MARK)?;
    (own == mark(bytes)).then_some(bytes)
}

/// Decodes a sealed value.
pub(crate) fn unseal<T: DeserializeOwned>(sealed: &[u8], what: &str) -> TableResult<T> {
    let bytes = unseal_bytes(sealed, what)?;
    postcard::from_bytes(bytes).map_err(|error| TableError {
        message: format!("{what} could not be decoded: {error}"),
        full: false,
    })
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
