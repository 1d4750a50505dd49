//! The one template language: data only, no loops, no includes, no code.
//!
//! `{{ payload.user.name | default("nobody") }}` takes a value out of the names that a template is rendered with. A name
//! that is not there is an error that says which one and where; every size is bounded. `docs/guide/templates.md` is the
//! reference.
//!
//! | file | what |
//! |---|---|
//! | `text.rs` | [`Template`]: a text with placeholders, which becomes a text |
//! | `json.rs` | [`JsonTemplate`]: JSON whose texts have placeholders, which becomes JSON |
//! | `condition.rs`, `evaluate.rs` | [`Condition`]: whether something is true of the names |
//! | `placeholder.rs`, `filter.rs`, `path.rs` | what stands between the braces |
//! | `scan.rs` | reading it |
//! | `wanted.rs`, `reference.rs` | [`Wanted`], [`Reference`]: which names and paths something asks for |
//! | `error.rs`, `limits.rs` | what goes wrong, and every limit |
//!
//! **Invariants.** What is put in is never read as template, JSON or code again. Nothing here panics or runs without an
//! end, whatever the template and the values are.

mod condition;
mod error;
mod evaluate;
mod filter;
mod json;
pub mod limits;
mod path;
mod placeholder;
mod reference;
mod scan;
mod text;
mod wanted;

pub use condition::Condition;
pub use error::{Place, TemplateError};
pub use json::JsonTemplate;
pub use path::kind_of;
pub use reference::Reference;
pub use text::Template;
pub use wanted::Wanted;

#[cfg(test)]
mod property_tests;
