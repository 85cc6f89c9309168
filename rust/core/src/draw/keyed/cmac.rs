//! CMAC with AES-256 (NIST SP 800-38B). Every step takes the same time for all secrets.

use crate::draw::block::pair;
use crate::draw::cipher::Cipher;
use zeroize::Zeroizing;

/// A keyed function: without the key, it cannot be told from a random function.
pub(crate) struct Cmac {
    cipher: Cipher,
    /// For each length of a last block, the padding plus the subkey: its double unless the block is
    /// whole.
    tails: Zeroizing<Vec<u128>>,
}

impl Cmac {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let cipher = Cipher::new(key);
        let whole = Zeroizing::new(double(encrypt(&cipher, 0)));
        // Not from the secret: `vec!` would look at whether it is 0.
        let mut tails = Zeroizing::new(vec![0; 17]);
        tails[16] = *whole;
        for (len, tail) in tails[..16].iter_mut().enumerate() {
            *tail = 1 << (127 - 8 * len) ^ double(*whole);
        }
        Self { cipher, tails }
    }

    pub(crate) fn of(&self, message: &[u8]) -> [u8; 16] {
        encrypt(&self.cipher, self.before_last(message)).to_be_bytes()
    }

    /// CMAC state before the final block encryption, so that the last blocks of many messages can
    /// be encrypted together.
    #[inline]
    pub(crate) fn before_last(&self, message: &[u8]) -> u128 {
        if message.len() <= 16 {
            return last(message) ^ self.tails[message.len()];
        }
        let (whole, rest) = message.split_at((message.len() - 1) / 16 * 16);
        let mut state = 0;
        for block in whole.as_chunks().0 {
            state = encrypt(&self.cipher, state ^ u128::from_be_bytes(*block));
        }
        state ^ last(rest) ^ self.tails[rest.len()]
    }

    pub(crate) fn cipher(&self) -> &Cipher {
        &self.cipher
    }
}

/// Reads at most 16 bytes as the first ones of a big-endian number. They are not copied to an array
/// first, since a copy of unknown length is a function call.
#[inline]
fn last(bytes: &[u8]) -> u128 {
    let high = |bits: u64| u128::from(bits) << 64;
    // Two parts of known length, which may overlap.
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let [first, last] = [first, last].map(|part| u64::from_be_bytes(*part));
        high(first) | high(last) >> (8 * (bytes.len() - 8))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let [first, last] = [first, last].map(|part| u64::from(u32::from_be_bytes(*part)) << 32);
        high(first | last >> (8 * (bytes.len() - 4)))
    } else {
        // The first, the middle and the last of up to three bytes.
        let byte = |index: usize| u64::from(bytes[index]) << (56 - 8 * index);
        match bytes.len() {
            0 => 0,
            len => high(byte(0) | byte(len / 2) | byte(len - 1)),
        }
    }
}

/// Multiplies by x in the field of `2^128` elements.
fn double(element: u128) -> u128 {
    (element << 1) ^ (0x87 & (element >> 127).wrapping_neg())
}

fn encrypt(cipher: &Cipher, block: u128) -> u128 {
    let mut blocks = [pair(block.to_be_bytes())];
    cipher.encrypt(&mut blocks);
    let [[first, second]] = blocks.map(|block| block.map(|word| u128::from(word.swap_bytes())));
    first << 64 | second
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST's examples for CMAC with AES-256.
    #[test]
    fn known_codes() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = (0..text.len()).step_by(2);
            digits
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
                .collect()
        };
        let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
        let message = hex(concat!(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51",
            "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
        ));
        let cmac = Cmac::new(&key.try_into().unwrap());
        for (len, code) in [
            (0, "028962f61b7bf89efc6b551f4667d983"),
            (16, "28a7023f452e8f82bd4bf28d8c37c35c"),
            (40, "aaf3d8f1de5640c232f5b169b9c911e6"),
            (64, "e1992190549f6ed5696a2c056c315410"),
        ] {
            assert_eq!(cmac.of(&message[..len])[..], hex(code));
        }
    }
}
