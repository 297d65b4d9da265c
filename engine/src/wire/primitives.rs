//! The primitives of the Noise protocol, all from ring. The process then has one implementation of X25519,
//! ChaCha20-Poly1305 and SHA-256, which TLS uses, too.

use std::sync::{Mutex, PoisonError};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};

/// The only suite that [`Primitives`] supports.
pub(super) const SUITE: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// Bytes that encryption adds.
pub(super) const TAG: usize = 16;

pub(super) struct Primitives;

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(RingRandom(SystemRandom::new())))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519)
            .then(|| Box::new(X25519KeyPair::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::SHA256)
            .then(|| Box::new(Sha256Hash(Context::new(&SHA256))) as Box<dyn Hash>)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::ChaChaPoly)
            .then(|| Box::new(ChaChaPoly(None)) as Box<dyn Cipher>)
    }
}

struct RingRandom(SystemRandom);

impl Random for RingRandom {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.0.fill(dest).map_err(|_| Error::Rng)
    }
}

/// A key pair of one handshake. It serves one key agreement, and pattern NN needs no more. ring does not
/// export private keys, and none is ever set.
#[derive(Default)]
struct X25519KeyPair {
    // Taken by its only use, behind a lock because the trait has `&self`.
    private: Mutex<Option<EphemeralPrivateKey>>,
    public: [u8; 32],
}

impl Dh for X25519KeyPair {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, _private: &[u8]) {
        self.private = Mutex::new(None);
    }

    fn generate(&mut self, _dice: &mut dyn Random) -> Result<(), Error> {
        let private =
            EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| Error::Rng)?;
        let public = private.compute_public_key().map_err(|_| Error::Dh)?;
        self.public.copy_from_slice(public.as_ref());
        self.private = Mutex::new(Some(private));
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &[]
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let private = self.private.lock().unwrap_or_else(PoisonError::into_inner).take();
        let private = private.ok_or(Error::Dh)?;
        let public = UnparsedPublicKey::new(&X25519, public.get(..32).ok_or(Error::Dh)?);
        agree_ephemeral(private, &public, |shared| out[..32].copy_from_slice(shared))
            .map_err(|_| Error::Dh)
    }
}

struct Sha256Hash(Context);

impl Hash for Sha256Hash {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Context::new(&SHA256);
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(self.0.clone().finish().as_ref());
    }
}

struct ChaChaPoly(Option<LessSafeKey>);

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0 = UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new);
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (body, rest) = out.split_at_mut(plaintext.len());
        body.copy_from_slice(plaintext);
        let sealed = self.0.as_ref().and_then(|key| {
            key.seal_in_place_separate_tag(noise_nonce(nonce), Aad::from(authtext), body).ok()
        });
        match sealed {
            Some(tag) => rest[..TAG].copy_from_slice(tag.as_ref()),
            // Messages of this size do not fail. If one did, no plain text may leave the process.
            None => out[..plaintext.len() + TAG].fill(0),
        }
        plaintext.len() + TAG
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let key = self.0.as_ref().ok_or(Error::Decrypt)?;
        let (body, tag) = ciphertext.split_last_chunk::<TAG>().ok_or(Error::Decrypt)?;
        let out = out.get_mut(..body.len()).ok_or(Error::Decrypt)?;
        out.copy_from_slice(body);
        key.open_in_place_separate_tag(
            noise_nonce(nonce),
            Aad::from(authtext),
            (*tag).into(),
            out,
            0..,
        )
        .map_err(|_| Error::Decrypt)?;
        Ok(body.len())
    }
}

/// Four zero bytes, then the number, little end first: the Noise specification, section 12.3.
fn noise_nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}
