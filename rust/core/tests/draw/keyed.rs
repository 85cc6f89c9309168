//! Keyed noise against the construction of `docs/keyed.md`, block by block.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

use crate::model::Model;
use aes::Aes256Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use geomdp_core::keyed::{AddressedDraws, Addresses, IdKind, ReleaseKey};
use geomdp_core::{Count, Error, Mechanism, Rate};
use proptest::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

fn aes(key: &[u8; 32], block: u128) -> u128 {
    let mut block = block.to_le_bytes().into();
    Aes256Enc::new(key.into()).encrypt_block(&mut block);
    u128::from_le_bytes(block.into())
}

/// CMAC as NIST SP 800-38B specifies it, on big-endian numbers.
fn cmac(key: &[u8; 32], message: &[u8]) -> [u8; 16] {
    let cipher = |block: u128| aes(key, block.swap_bytes()).swap_bytes();
    let double = |x: u128| (x << 1) ^ (0x87 * (x >> 127));
    let subkey = double(cipher(0));
    let blocks = message.len().div_ceil(16).max(1);
    let mut state = 0;
    for (index, part) in (0..blocks).map(|i| (i, &message[16 * i..message.len().min(16 * i + 16)]))
    {
        let mut block = [0; 16];
        block[..part.len()].copy_from_slice(part);
        if part.len() < 16 {
            block[part.len()] = 0x80;
        }
        let last = match part.len() {
            _ if index + 1 < blocks => 0,
            16 => subkey,
            _ => double(subkey),
        };
        state = cipher(state ^ u128::from_be_bytes(block) ^ last);
    }
    state.to_be_bytes()
}

/// SP 800-108 in counter mode: 256 bits.
fn derive(key: &[u8; 32], purpose: &[u8], context: &[&[u8]]) -> [u8; 32] {
    let mut derived = Vec::new();
    for index in 1..=2 {
        let mut message = [&[index], purpose, &[0]].concat();
        for part in context {
            message.extend((part.len() as u64).to_be_bytes());
            message.extend(*part);
        }
        message.extend([0, 0, 1, 0]);
        derived.extend(cmac(key, &message));
    }
    derived.try_into().unwrap()
}

#[derive(Clone, Debug)]
enum Column {
    Integers(Vec<Option<i128>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    /// This column's contribution to the address of a count.
    fn part(&self, key: &[u8; 32], column: u32, alone: bool, row: usize) -> u128 {
        let column = column.to_be_bytes();
        match self {
            Self::Integers(ids) if alone => {
                let key = derive(key, b"geomdp ids", &[b"alone", &column]);
                let half = |at: usize| u128::from_le_bytes(key[at..at + 16].try_into().unwrap());
                match ids[row] {
                    Some(id) if id >= 0 => id as u128,
                    Some(id) => u128::from(id as u64) ^ half(0),
                    None => half(16),
                }
            }
            Self::Integers(ids) => {
                let key = derive(key, b"geomdp ids", &[b"integers", &column]);
                aes(&key, ids[row].unwrap_or(i128::MAX) as u128)
            }
            Self::Bytes(ids) => {
                let null = derive(key, b"geomdp ids", &[b"null", &column]);
                let key = derive(key, b"geomdp ids", &[b"bytes", &column]);
                match &ids[row] {
                    Some(id) => u128::from_le_bytes(cmac(&key, id)),
                    None => aes(&key, u128::from_le_bytes(null[..16].try_into().unwrap())),
                }
            }
        }
    }

    fn kind(&self) -> IdKind {
        match self {
            Self::Integers(_) => IdKind::Integers,
            Self::Bytes(_) => IdKind::Bytes,
        }
    }

    fn add_to(&self, addresses: &mut Addresses<'_>, rows: Range<usize>) -> Result<(), Error> {
        match self {
            Self::Integers(ids) if ids.iter().flatten().any(|&id| id < 0) => {
                let ids = ids[rows].iter().map(|id| id.map(|id| id as i64));
                addresses.add_nullable_integers(ids)
            }
            Self::Integers(ids) => {
                let ids = ids[rows].iter().map(|id| id.map(|id| id as u64));
                addresses.add_nullable_integers(ids)
            }
            Self::Bytes(ids) => addresses.add_bytes(ids[rows].iter().map(|id| id.as_deref())),
        }
    }
}

/// Releases these counts in parts of these lengths.
fn release_in_parts<T: Count>(
    secret: &[u8; 32],
    mechanism: &Mechanism,
    name: &[u8],
    columns: &[Column],
    counts: &[T],
    parts: &[usize],
) -> Vec<T> {
    let key = ReleaseKey::from_secret(secret);
    let keys = key.id_keys(&columns.iter().map(Column::kind).collect::<Vec<_>>());
    let (kernel, lower) = mechanism.kernel_for::<T>().unwrap();
    let tape_key = key.tape_key::<T>(mechanism, name);
    let mut draws = AddressedDraws::new(kernel, lower, &tape_key);
    let mut addresses = keys.addresses(parts[0]);
    let (mut noisy, mut start) = (counts.to_vec(), 0);
    for len in parts {
        let rows = start..start + len;
        addresses.restart(*len);
        for column in columns {
            column.add_to(&mut addresses, rows.clone()).unwrap();
        }
        draws.add_noise(&addresses, &mut noisy[rows]).unwrap();
        start += len;
    }
    assert_eq!(start, counts.len());
    noisy
}

fn release<T: Count>(
    secret: &[u8; 32],
    mechanism: &Mechanism,
    name: &[u8],
    columns: &[Column],
    counts: &[T],
) -> Vec<T> {
    release_in_parts(secret, mechanism, name, columns, counts, &[counts.len()])
}

fn mechanism(scale: f64, bounds: Option<(i128, i128)>) -> Mechanism {
    Mechanism::new(Some(Rate::from_scale(scale).unwrap()), bounds).unwrap()
}

/// The noisy count according to the construction.
fn expected(
    secret: &[u8; 32],
    (scale, bounds): (f64, (i128, i128)),
    name: &[u8],
    columns: &[Column],
    row: usize,
    count: i64,
) -> i64 {
    let mechanism = mechanism(scale, Some(bounds));
    let rate = mechanism.rate().unwrap();
    let limits = [i64::MIN.into(), i64::MAX.into(), bounds.0, bounds.1].map(i128::to_le_bytes);
    let (num, den) = (rate.num().to_bytes_le(), rate.den().to_bytes_le());
    let key = derive(
        secret,
        b"geomdp tape",
        &[&num, &den, limits.as_flattened(), name],
    );
    let address = (columns.iter().zip(0..)).fold(0, |sum, (column, index)| {
        sum ^ column.part(secret, index, columns.len() == 1, row)
    });
    let (kernel, lower) = mechanism.kernel_for::<i64>().unwrap();
    let input = address ^ (u128::from(count as u64 ^ (1 << 63)) << 64);
    let plan = kernel.plan();
    let tape: Vec<u64> = (0..plan.words().div_ceil(2) as u128)
        .map(|index| {
            let halves = [2 * index, 2 * index + 1].map(|half| aes(&key, half).to_le_bytes());
            aes(halves.as_flattened().try_into().unwrap(), input)
        })
        .flat_map(|block| [block as u64, (block >> 64) as u64])
        .collect();
    let offset = i128::from(count).clamp(bounds.0, bounds.1) - bounds.0;
    lower.wrapping_add(Model::new(plan).noisy(&tape[..plan.words()], offset as u64, |_| ()) as i64)
}

/// Example 4 of NIST's examples for CMAC with AES-256, and the one with the empty message.
#[test]
fn the_model_gives_known_cmac_codes() {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text
            .chars()
            .map(|c| c.to_digit(16).unwrap() as u8)
            .collect();
        digits
            .chunks(2)
            .map(|pair| 16 * pair[0] + pair[1])
            .collect()
    };
    let key = hex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
    let message =
        hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411");
    let key = key.try_into().unwrap();
    assert_eq!(cmac(&key, b"")[..], hex("028962f61b7bf89efc6b551f4667d983"));
    assert_eq!(
        cmac(&key, &message)[..],
        hex("aaf3d8f1de5640c232f5b169b9c911e6")
    );
}

fn columns(len: usize) -> impl Strategy<Value = Vec<Column>> {
    let signed = prop::option::weighted(0.8, any::<i64>().prop_map(i128::from));
    let unsigned = prop::option::weighted(0.8, any::<u64>().prop_map(i128::from));
    let bytes = prop::option::weighted(0.8, prop::collection::vec(any::<u8>(), 0..40));
    let column = prop_oneof![
        prop::collection::vec(signed, len).prop_map(Column::Integers),
        prop::collection::vec(unsigned, len).prop_map(Column::Integers),
        prop::collection::vec(bytes, len).prop_map(Column::Bytes),
    ];
    prop::collection::vec(column, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn noise_follows_from_the_address(
        secret: [u8; 32],
        scale in prop_oneof![Just(0.3), Just(1.0), Just(12.0), Just(1e4), Just(1e12)],
        bounds in prop_oneof![Just((0, 100)), Just((-5, i128::from(i64::MAX))), Just((i64::MIN.into(), 7))],
        name in "[a-z]{0,5}",
        (counts, columns) in (1usize..70).prop_flat_map(|len| (prop::collection::vec(any::<i64>(), len), columns(len))),
    ) {
        let chosen = mechanism(scale, Some(bounds));
        let noisy = release(&secret, &chosen, name.as_bytes(), &columns, &counts);
        let wanted: Vec<i64> = (0..counts.len())
            .map(|row| expected(&secret, (scale, bounds), name.as_bytes(), &columns, row, counts[row]))
            .collect();
        prop_assert_eq!(noisy, wanted);
    }
}

/// The noise does not depend on the pieces of the loop: more counts than a piece holds, in parts of
/// any length, each with restarted addresses.
#[test]
fn parts_of_any_length_have_the_same_noise_as_the_whole() {
    for scale in [0.3, 1.0, 1e4, 1e15] {
        let (mechanism, secret, len) = (mechanism(scale, None), [5; 32], 1500);
        let counts: Vec<i64> = (0..len as i64).map(|i| i * i).collect();
        let integers = || Column::Integers((0..len as i128).map(Some).collect());
        let bytes = || Column::Bytes((0..len).map(|i| Some(i.to_string().into())).collect());
        for ids in [vec![integers()], vec![bytes()], vec![integers(), bytes()]] {
            let whole = release(&secret, &mechanism, b"", &ids, &counts);
            let parts = [1, 16, 700, 0, 15, 17, 333, 418];
            let noisy = release_in_parts(&secret, &mechanism, b"", &ids, &counts, &parts);
            assert_eq!(noisy, whole);
            // All lengths up to more than two pieces; each count alone has the noise of its address.
            let alone = release_in_parts(&secret, &mechanism, b"", &ids, &counts[..300], &[1; 300]);
            for len in 0..=300 {
                let noisy = release(&secret, &mechanism, b"", &ids, &counts[..len]);
                assert_eq!(noisy, alone[..len]);
            }
        }
    }
}

#[test]
fn nullable_integers_without_nulls_are_the_same_ids() {
    let noise = |nullable: bool| {
        let key = ReleaseKey::from_secret(&[1; 32]);
        let keys = key.id_keys(&[IdKind::Integers, IdKind::Integers]);
        let (small, large): (Vec<i64>, Vec<u64>) = ((-150..151).collect(), (7..308).collect());
        let mut addresses = keys.addresses(301);
        if nullable {
            let small = small.iter().copied().map(Some);
            addresses.add_nullable_integers(small).unwrap();
            let large = large.iter().copied().map(Some);
            addresses.add_nullable_integers(large).unwrap();
        } else {
            addresses.add_integers(&small).unwrap();
            addresses.add_integers(&large).unwrap();
        }
        let mechanism = mechanism(1e6, None);
        let (kernel, lower) = mechanism.kernel_for().unwrap();
        let tape_key = key.tape_key::<i64>(&mechanism, b"");
        let mut counts = [0; 301];
        let mut draws = AddressedDraws::new(kernel, lower, &tape_key);
        draws.add_noise(&addresses, &mut counts).unwrap();
        counts
    };
    assert_eq!(noise(true), noise(false));
}

/// An iterator that reports more ids than it has.
struct Short<T>(PhantomData<T>);

impl<T> Short<T> {
    fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Iterator for Short<T> {
    type Item = Option<T>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (3, Some(3))
    }
}

impl<T> ExactSizeIterator for Short<T> {}

/// Counts without an id would share an address.
#[test]
fn too_few_ids_panic() {
    let key = ReleaseKey::from_secret(&[1; 32]);
    for kinds in [&[IdKind::Integers][..], &[IdKind::Integers; 2]] {
        let keys = key.id_keys(kinds);
        let add = || keys.addresses(3).add_nullable_integers(Short::<i64>::new());
        assert!(std::panic::catch_unwind(add).is_err());
    }
    let keys = key.id_keys(&[IdKind::Bytes]);
    let add = || keys.addresses(3).add_bytes(Short::<&[u8]>::new());
    assert!(std::panic::catch_unwind(add).is_err());
}

#[test]
fn mismatched_ids_and_counts_are_an_error() {
    let (key, mechanism) = (ReleaseKey::from_os().unwrap(), mechanism(1.0, None));
    let (kernel, lower) = mechanism.kernel_for::<i64>().unwrap();
    let tape_key = key.tape_key::<i64>(&mechanism, b"");
    let mut draws = AddressedDraws::new(kernel, lower, &tape_key);
    let mut counts = [5; 4];
    let mut refused = |addresses: &Addresses<'_>, counts: &mut [i64], name: &str| {
        let (before, error) = (counts.to_vec(), draws.add_noise(addresses, counts));
        assert!(error.unwrap_err().to_string().starts_with(name));
        assert_eq!(counts, before);
    };
    // Without ids, all counts would have the same tape.
    refused(&key.id_keys(&[]).addresses(3), &mut counts[..3], "ids");
    let keys = key.id_keys(&[IdKind::Integers, IdKind::Bytes]);
    let mut addresses = keys.addresses(3);
    refused(&addresses, &mut counts[..3], "ids");
    let short = addresses.add_integers(&[1, 2]);
    assert!(short.unwrap_err().to_string().starts_with("ids = 2"));
    addresses.add_integers(&[1, 2, 3]).unwrap();
    refused(&addresses, &mut counts[..3], "ids");
    let bytes = || [Some(&b"a"[..]), None, Some(b"")].into_iter();
    addresses.add_bytes(bytes()).unwrap();
    refused(&addresses, &mut counts, "counts = 4");
    refused(&addresses, &mut counts[..2], "counts = 2");
    draws.add_noise(&addresses, &mut counts[..3]).unwrap();
    // Extra columns and columns of another type are an error, and leave nothing usable.
    assert!(addresses.add_integers(&[1, 2, 3]).is_err());
    addresses.restart(3);
    assert!(draws.add_noise(&addresses, &mut counts[..3]).is_err());
    let mut others = keys.addresses(3);
    assert!(others.add_bytes(bytes()).is_err());
    assert!(draws.add_noise(&others, &mut counts[..3]).is_err());
}

#[test]
fn debug_shows_no_secret() {
    let key = ReleaseKey::from_secret(&[0xab; 32]);
    assert_eq!(format!("{key:?}"), "ReleaseKey { .. }");
    let keys = key.id_keys(&[IdKind::Integers]);
    assert_eq!(format!("{keys:?}"), "IdKeys { .. }");
    assert_eq!(format!("{:?}", keys.addresses(1)), "Addresses { .. }");
    assert_eq!(key.secret(), &[0xab; 32]);
    assert_ne!(
        ReleaseKey::from_os().unwrap().secret(),
        ReleaseKey::from_os().unwrap().secret()
    );
}
