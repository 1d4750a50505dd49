//! Whether an orchestration that is to be started exists: on this node, or on another one within the last day.
//!
//! A misspelled name would be stored, wait for a node that has it, and fail after a quarter of an hour. The day lets all nodes be
//! replaced without refusing a start.

use segno::published::{self, PublishedOrchestration};
use segno::{OrchestrationSchemas, Payload};
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
    /// Orchestrations after a name, by name, without those that only Segno itself starts.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn orchestrations(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<PublishedOrchestration>, Refusal> {
        let mut found = Vec::new();
        let mut after = after.map(str::to_owned);
        while found.len() < limit {
            let wanted = limit - found.len();
            let page = published::published(&*self.resources().store, after.as_deref(), wanted).await?;
            let is_last = page.len() < wanted;
            after = page.last().map(|found| found.name.clone());
            found.extend(page.into_iter().filter(|found| !is_built_in(&found.name)));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// An orchestration that a node has.
    ///
    /// # Errors
    /// As [`Tenant::check_known`].
    pub async fn orchestration(&self, name: &str) -> Result<PublishedOrchestration, Refusal> {
        if is_built_in(name) {
            return Err(Refusal::built_in(name));
        }
        let schemas = self.check_known(name).await?;
        let published = published::published_as(&*self.resources().store, name).await;
        let published = published.map_err(|error| self.refused(error))?;
        Ok(published.unwrap_or_else(|| {
            // This node has it, and has not published it yet.
            let own = self.app.orchestrations.iter().filter(|(own, _)| own == name);
            let versions = own.map(|(_, version)| version.clone()).collect();
            PublishedOrchestration { name: name.to_owned(), versions, schemas }
        }))
    }

    /// Refuses the input of an orchestration that does not fit the schema that it declares.
    ///
    /// # Errors
    /// As [`Tenant::check_known`]; `invalid-input`, `schema-too-costly`.
    pub async fn check_start(&self, name: &str, input: &Payload) -> Result<(), Refusal> {
        let Some(schema) = self.check_known(name).await?.input else { return Ok(()) };
        let functions = &self.resources().functions;
        let checked = functions.check_orchestration_input(&self.owner(), (name, &schema), input).await;
        checked.map_err(|error| self.refused(error))
    }

    /// Refuses the name of an orchestration that no node has; the schemas of one that a node has.
    ///
    /// # Errors
    /// `unknown-orchestration` with the nearest names, `invalid-name`, and those of the store.
    pub async fn check_known(&self, name: &str) -> Result<OrchestrationSchemas, Refusal> {
        let (own, store) = (&self.app.orchestrations, &*self.resources().store);
        if own.iter().any(|(own, _)| own == name) {
            return Ok(self.app.schemas.get(name).cloned().unwrap_or_default());
        }
        if let Some(found) =
            published::published_as(store, name).await.map_err(|error| self.refused(error))?
        {
            return Ok(found.schemas);
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
