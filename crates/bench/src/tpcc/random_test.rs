use super::*;

#[test]
fn non_uniform_numbers_stay_in_their_range() {
    let mut random = Random::new(1, 0);
    for (a, low, high) in [(255, 0, 999), (1023, 1, 3000), (8191, 1, 100_000), (8191, 1, 40)] {
        let numbers: Vec<_> = (0..50_000).map(|_| non_uniform(&mut random, a, 77, low, high)).collect();
        assert!(numbers.iter().all(|n| (low..=high).contains(n)));
        assert!(numbers.contains(&low) || high > 10_000);
    }
}

#[test]
fn non_uniform_numbers_are_not_uniform() {
    let mut random = Random::new(1, 0);
    let mut counts = vec![0u32; 3000];
    for _ in 0..300_000 {
        counts[non_uniform(&mut random, 1023, 259, 1, 3000) as usize - 1] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // Uniform numbers would give the most frequent tenth little over 30,000.
    assert!(counts[..300].iter().sum::<u32>() > 60_000);
}

#[test]
fn last_names_are_made_of_syllables() {
    assert_eq!(last_name(0).as_str(), "BARBARBAR");
    assert_eq!(last_name(371).as_str(), "PRICALLYOUGHT");
    assert_eq!(last_name(999).as_str(), "EINGEINGEING");
    assert_eq!(last_name(777).as_str().len(), 15);
    let all: std::collections::BTreeSet<_> = (0..1000).map(|n| last_name(n).as_str().to_owned()).collect();
    assert_eq!(all.len(), 1000);
}

#[test]
fn the_constant_of_a_run_keeps_its_distance() {
    for loaded in 0..=255 {
        let mut random = Random::new(9, loaded.into());
        for _ in 0..20 {
            let run = Constants::for_run(loaded, &mut random);
            let delta = run.last_name.abs_diff(loaded);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
            assert!(run.last_name <= 255 && run.customer <= 1023 && run.item <= 8191);
        }
    }
}

#[test]
fn every_deck_holds_the_exact_mix_in_another_order() {
    let mut random = Random::new(4, 4);
    let mut deck = Deck::default();
    let mut orders = Vec::new();
    for _ in 0..3 {
        let hundred: Vec<_> = (0..100).map(|_| deck.draw(&mut random)).collect();
        for (kind, &count) in MIX.iter().enumerate() {
            assert_eq!(hundred.iter().filter(|&&k| k == kind).count(), usize::from(count));
        }
        orders.push(hundred);
    }
    assert_ne!(orders[0], orders[1]);
    assert_ne!(orders[1], orders[2]);
}

#[test]
fn texts_have_their_lengths() {
    let mut random = Random::new(4, 4);
    let lengths: Vec<_> = (0..1000).map(|_| Text::<20>::letters(&mut random, 10).as_str().len()).collect();
    assert_eq!(lengths.iter().min(), Some(&10));
    assert_eq!(lengths.iter().max(), Some(&20));
    assert_eq!(zip(&mut random).as_str().len(), 9);
    assert!(zip(&mut random).as_str().ends_with("11111"));
}

#[test]
fn one_data_string_in_ten_is_original() {
    let mut random = Random::new(4, 4);
    let original =
        (0..10_000).filter(|_| Text::<50>::data(&mut random, 26).as_str().contains("ORIGINAL")).count();
    assert!((850..1150).contains(&original), "{original}");
}

#[test]
fn a_text_that_is_full_drops_what_follows() {
    let mut text = Text::<8>::EMPTY;
    text.push_number(0);
    text.push_number(123_450);
    text.push("äb");
    assert_eq!(text.as_str(), "0123450");
    text.push("xyz");
    assert_eq!(text.as_str(), "0123450x");
}
