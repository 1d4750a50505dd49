//! Whether an orchestration that is to be started exists: on this node, or on another one within the last day.
//!
//! A misspelled name would be stored, wait for a node that has it, and fail after a quarter of an hour. The day lets all nodes be
//! replaced without refusing a start.

use segno::published::{self, PublishedOrchestration};
use segno_actions::functions::is_built_in;

use super::Tenant;
use crate::problem::{Code, Refusal};

/// Most names that are compared with the one that is not known.
const MAX_COMPARED: usize = 1_000;

/// Most names that a refusal suggests.
const MAX_SUGGESTED: usize = 3;

/// Longest name that is compared, in characters: the cost grows with the square.
const MAX_COMPARED_CHARACTERS: usize = 100;

impl Tenant {
    /// Refuses the name of an orchestration that no node has.
    ///
    /// # Errors
    /// `unknown-orchestration` with the nearest names, `invalid-name`, and those of the store.
    pub async fn check_known(&self, name: &str) -> Result<(), Refusal> {
        let (own, store) = (&self.app.orchestrations, &*self.resources().store);
        if own.iter().any(|(own, _)| own == name) {
            return Ok(());
        }
        if published::is_published(store, name).await.map_err(|error| self.refused(error))? {
            return Ok(());
        }
        let names = published::published(store, None, MAX_COMPARED).await?;
        let mut names: Vec<String> =
            names.into_iter().map(|PublishedOrchestration { name, .. }| name).collect();
        names.extend(own.iter().map(|(own, _)| own.clone()));
        names.retain(|name| !is_built_in(name));
        names.sort();
        names.dedup();
        let near = nearest(name, names);
        let advice = match near.is_empty() {
            true => "check the name, or start a node that has it".to_owned(),
            false => format!("did you mean {}?", near.join(" or ")),
        };
        let detail = format!("no node has had an orchestration {name:?} within the last 24 hours; {advice}");
        Err(Refusal::new(Code::UnknownOrchestration, detail))
    }
}

/// The names that are most like one, nearest first, quoted.
fn nearest(name: &str, names: Vec<String>) -> Vec<String> {
    let compared = |name: &str| name.to_lowercase().chars().take(MAX_COMPARED_CHARACTERS).collect::<String>();
    let wanted = compared(name);
    // A third of it may differ, as in a name with two typing errors of six letters.
    let most = wanted.chars().count().div_ceil(3).max(1);
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .map(|other| (strsim::levenshtein(&wanted, &compared(&other)), other))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort();
    near.truncate(MAX_SUGGESTED);
    near.into_iter().map(|(_, name)| format!("{name:?}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_are_suggested() {
        let names = || ["greet", "greeting", "order", "Großbestellung"].map(str::to_owned).to_vec();
        for (name, near) in [
            ("gret", &["\"greet\""][..]),
            ("GREET", &["\"greet\""]),
            ("greetin", &["\"greeting\"", "\"greet\""]),
            ("großbestelung", &["\"Großbestellung\""]),
            ("nosuch", &[]),
            ("", &[]),
        ] {
            assert_eq!(nearest(name, names()), near, "{name}");
        }
    }
}
