//! Documents that users write, such as runbooks and DAGs: YAML or JSON, read into a tree with places so that all
//! problems are reported at once, each with its line, column, path and advice.
//!
//! A room that has a format brings its keys ([`ObjectKeys`]), its [`Budget`] and a reader of its own that implements
//! [`PartReader`].
//!
//! | file | what |
//! |---|---|
//! | `tree.rs`, `budget.rs` | the document as a tree with places, parsed under budgets |
//! | `size.rs` | what a document stands for, counted before it is parsed |
//! | `field.rs`, `keys.rs` | a value with its path, a map with known keys |
//! | `reader.rs` | values of all types, with a report of problems |
//! | [`problem`] | problems, each with its place |
//! | `positions.rs` | where the parts of a definition stand, for problems that are found later |
//! | `templates.rs` | texts that are templates |
//! | `suggestion.rs` | "did you mean" |
//! | `excerpt.rs` | texts of users in errors |
//! | `limits.rs` | limits that all formats share |

mod budget;
mod excerpt;
mod field;
mod keys;
pub mod limits;
mod positions;
pub mod problem;
mod reader;
mod size;
mod suggestion;
mod templates;
mod tree;

pub use budget::{Budget, ListLimit};
pub use excerpt::{folded, shown};
pub use field::{Field, Fields, below};
pub use keys::ObjectKeys;
pub use positions::Positions;
pub use problem::{Position, Problem, Problems, Severity};
pub use reader::{Origin, PartReader, percent_of};
pub use suggestion::did_you_mean;
pub use templates::{template_of, templates_of};
pub use tree::{Document, Entry, Node, Tree, read};
