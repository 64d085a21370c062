//! The formats that problems come in: what their fields and files mean. Reading records and folders is done in
//! [`crate::records`] and beside the formats that need it.

pub(crate) mod apps;
mod asserts;
pub(crate) mod codecontests;
#[cfg(test)]
mod datasets_tests;
mod functions;
pub(crate) mod humaneval;
mod literal;
pub(crate) mod livecodebench;
pub(crate) mod package;
mod pickle;
