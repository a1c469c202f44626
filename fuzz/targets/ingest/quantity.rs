use tidegate::usage::{QuantityError, parse_quantity};

/// Parses a decimal number, and what it prints as: the same number with the same decimal places.
pub fn run(input: &[u8]) -> bool {
    let parsed = parse_quantity(input);
    let Ok(quantity) = parsed else {
        let signed = [b"-", input].concat();
        let has_sign = matches!(input.first(), Some(b'-' | b'+'));
        assert!(has_sign || parse_quantity(&signed) == parsed, "the sign changes no error");
        return false;
    };
    let printed = quantity.to_string();
    assert_eq!(parse_quantity(printed.as_bytes()), Ok(quantity), "{printed}");
    assert!(quantity.scale() <= 28);
    // A digit more at the left is another number, or one too large.
    let longer = ["1", printed.trim_start_matches('-')].concat();
    match parse_quantity(longer.as_bytes()) {
        Ok(longer) => assert!(longer > quantity.abs(), "{longer} {quantity}"),
        Err(error) => assert_eq!(error, QuantityError::OutOfRange),
    }
    true
}
