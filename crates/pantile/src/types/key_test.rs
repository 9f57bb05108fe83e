use pantile_testkit::Random;

use super::{Key, word_of};
use crate::types::schema::Type;
use crate::types::value::Value;

/// Byte by byte, as `docs/format.md` says it.
fn simple(prefix: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut all = prefix.to_vec();
    for byte in bytes {
        all.push(*byte);
        all.extend((*byte == 0).then_some(0xff));
    }
    all.extend([0, 1]);
    all
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_be_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}

fn random(random: &mut Random) -> Vec<u8> {
    (0..random.index(30)).map(|_| *random.pick(&[0, 0, 1, 7, 0xfe, 0xff])).collect()
}

/// Whatever is before them in the key, and wherever their zeros are.
#[test]
fn strings_are_encoded_byte_by_byte() {
    let mut numbers = Random::new(5, 0);
    for _ in 0..20_000 {
        let (before, a, b) = (numbers.index(8), random(&mut numbers), random(&mut numbers));
        let key = |bytes: &[u8]| {
            let mut key = Key::default();
            key.pack(|to| {
                (0..before).for_each(|_| to.push(0x2a, 1));
                to.push_value(Type::Bytes(100), &Value::Bytes(bytes));
            });
            key.words().to_vec()
        };
        let prefix = vec![0x2a; before];
        assert_eq!(key(&a), words(&simple(&prefix, &a)), "{before} before {a:?}");
        assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b), "{a:?} and {b:?}");

        let mut fixed = Key::default();
        fixed.pack(|to| {
            (0..before).for_each(|_| to.push(0x2a, 1));
            to.push_value(Type::FixedBytes(40), &Value::Bytes(&a));
        });
        let padded = [&prefix[..], &a, &vec![0; 40 - a.len()]].concat();
        assert_eq!(fixed.words(), words(&padded));
    }
}

/// Keys of one number that are looked for have the words of keys that rows have: its bytes, the highest first, with the sign
/// flipped.
#[test]
fn the_word_of_a_number_is_its_key() {
    let signed = [i64::MIN, i32::MIN.into(), -256, -1, 0, 1, 255, i32::MAX.into(), i64::MAX].map(Value::Int);
    let unsigned = [0, 1, 255, u32::MAX.into(), u64::MAX].map(Value::UInt);
    let bytes_of = |ty, value: &Value<'_>| match (ty, *value) {
        (Type::I32, Value::Int(v)) => Some((i32::try_from(v).ok()? ^ i32::MIN).to_be_bytes().to_vec()),
        (Type::I64, Value::Int(v)) => Some((v ^ i64::MIN).to_be_bytes().to_vec()),
        (Type::U32, Value::UInt(v)) => Some(u32::try_from(v).ok()?.to_be_bytes().to_vec()),
        (Type::U64, Value::UInt(v)) => Some(v.to_be_bytes().to_vec()),
        _ => None,
    };
    for ty in [Type::I32, Type::I64, Type::U32, Type::U64] {
        for value in signed.iter().chain(&unsigned) {
            let word = word_of(ty, value).map(|word| vec![word]);
            assert_eq!(word, bytes_of(ty, value).as_deref().map(words), "{value:?} as {ty}");
            if let Some(word) = word {
                let mut key = Key::default();
                key.pack(|to| to.push_value(ty, value));
                assert_eq!(key.words(), word, "{value:?} as {ty}");
            }
        }
    }
}
