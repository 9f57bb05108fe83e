//! What the compiler says of structs that cannot be rows. Each file of `tests/ui`
//! has its messages beside it.

#[test]
fn mistakes_are_named_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
