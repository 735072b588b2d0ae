//! Reading and printing of decimal seeds.

use hermetic_model::limits::SEED_TEXT_LEN_MAX;
use hermetic_model::seed::{Decimal, SeedError};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[test]
fn spellings_of_one_integer_become_one() {
    for (spelled, canonical) in [("0", "0"), ("-0", "0"), ("+000", "0"), ("-007", "-7"), ("+42", "42")] {
        assert_eq!(Decimal::parse(spelled.as_bytes()).unwrap().to_string(), canonical);
    }
}

#[test]
fn refuses_what_is_no_integer() {
    let long = "1".repeat(SEED_TEXT_LEN_MAX + 1);
    for (text, error) in [
        ("", SeedError::Empty),
        ("-", SeedError::Empty),
        ("4 2", SeedError::NotDecimal { at: 1 }),
        ("-4x", SeedError::NotDecimal { at: 2 }),
        ("--4", SeedError::NotDecimal { at: 1 }),
        (long.as_str(), SeedError::TooLong { len: SEED_TEXT_LEN_MAX + 1 }),
    ] {
        assert_eq!(Decimal::parse(text.as_bytes()), Err(error));
        assert!(error.to_string().ends_with("accepted is a decimal integer such as 42 or -7"));
    }
}

/// The same cases on every run; fresh ones are the fuzzer's business.
fn fixed() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(42), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(fixed())]

    #[test]
    fn integers_survive(value: i128) {
        let text = value.to_string();
        let seed = Decimal::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(seed.to_string(), text.as_str());
        prop_assert_eq!(seed.as_u64(), u64::try_from(value).ok());
    }
}
