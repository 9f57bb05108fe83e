//! Calls that must fail.

/// Asserts that a call fails with an error of this form, and that the message
/// contains these phrases: what happened, what is still true, what to do.
#[macro_export]
macro_rules! fails {
    ($call:expr, $form:pat, $($phrase:expr),+ $(,)?) => {{
        let error = $call.map(|_| ()).expect_err("must fail");
        assert!(matches!(error, $form), "{error:?}");
        let message = error.to_string();
        $(assert!(message.contains($phrase), "{message:?} says nothing of {:?}", $phrase);)+
    }};
}
