//! The formats that problems come in: what their fields and files mean. Reading records and folders is done in
//! [`crate::records`] and beside the formats that need it.

pub(crate) mod codecontests;
pub(crate) mod package;
