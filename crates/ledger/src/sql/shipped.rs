//! Queries by name.

/// A query with a name.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// The name.
    pub name: &'static str,
    /// What it shows.
    pub doc: &'static str,
    /// The query.
    pub text: &'static str,
}

/// All of them, by name.
pub fn shipped() -> &'static [Shipped] {
    &[]
}
