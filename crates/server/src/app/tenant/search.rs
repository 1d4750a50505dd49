//! Search across kinds, by how ids and names begin.
//!
//! What a list finds by the beginning of an id or name is found by it. Of schedules, actions and batches a bounded number is
//! looked at, newest first.

use segno_actions::Listed;
use segno_actions::functions::FunctionName;
use segno_actions::hooks::HookName;
use segno_api::search::{SearchHit, SearchKind, SearchResult};

use super::{InstanceFilter, Tenant};
use crate::problem::Refusal;

/// Schedules, actions and batches that are looked at, of each.
const MAX_LOOKED_AT: usize = 300;

/// What was found of a kind, and whether there may be more.
type Hits = (Vec<SearchHit>, bool);

impl Tenant {
    /// What begins with a text, at most so many of each kind.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn search(&self, text: &str, limit: usize) -> Result<SearchResult, Refusal> {
        let mut result = SearchResult { hits: Vec::new(), truncated: Vec::new() };
        let (instances, functions, schedules, actions, runbooks, batches, dags, hooks) = tokio::try_join!(
            self.find_instances(text, limit),
            self.find_functions(text, limit),
            self.find_schedules(text, limit),
            self.find_actions(text, limit),
            self.find_runbooks(text, limit),
            self.find_batches(text, limit),
            self.find_dags(text, limit),
            self.find_hooks(text, limit),
        )?;
        for (kind, (hits, more)) in [
            (SearchKind::Instance, instances),
            (SearchKind::Function, functions),
            (SearchKind::Schedule, schedules),
            (SearchKind::Action, actions),
            (SearchKind::Runbook, runbooks),
            (SearchKind::Batch, batches),
            (SearchKind::Dag, dags),
            (SearchKind::Hook, hooks),
        ] {
            result.hits.extend(hits);
            result.truncated.extend(more.then_some(kind));
        }
        Ok(result)
    }

    async fn find_instances(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        let filter = InstanceFilter { prefix: Some(text.to_owned()), limit, ..InstanceFilter::default() };
        let page = self.instances(filter).await?;
        let hits = page.instances.into_iter().map(|found| {
            let function = self.function_of(&found.labels).map(str::to_owned);
            SearchHit {
                name: function.or(found.orchestration),
                status: Some(found.status.to_string()),
                ..hit(SearchKind::Instance, found.id)
            }
        });
        Ok((hits.collect(), page.next.is_some()))
    }

    async fn find_functions(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        // A name begins with a name.
        let Ok(name) = FunctionName::new(text) else { return Ok((Vec::new(), false)) };
        let own = self.function(&name).await.ok().map(|found| found.name.to_string());
        let behind = self.functions(Some(&name), limit + 1).await.map_err(|error| self.refused(error))?;
        let behind = behind.into_iter().map(|row| match row {
            Listed::Readable(found) => found.name.to_string(),
            Listed::Unreadable(row) => row.id,
        });
        Ok(begin_with(SearchKind::Function, (text, limit), own.into_iter().chain(behind)))
    }

    async fn find_hooks(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        let Ok(name) = HookName::new(text) else { return Ok((Vec::new(), false)) };
        let own = self.hook(&name).await.ok().map(|found| found.name.to_string());
        let behind = self.hooks(Some(&name), limit + 1).await.map_err(|error| self.refused(error))?;
        let behind = behind.into_iter().map(|row| match row {
            Listed::Readable(found) => found.name.to_string(),
            Listed::Unreadable(row) => row.id,
        });
        Ok(begin_with(SearchKind::Hook, (text, limit), own.into_iter().chain(behind)))
    }

    async fn find_runbooks(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        let own = self.runbook(text).await.ok().map(|_| text.to_owned());
        let behind = self.runbooks(Some(text), limit + 1).await?;
        let behind = behind.into_iter().map(|row| match row {
            Listed::Readable(found) => found.name,
            Listed::Unreadable(row) => row.id,
        });
        Ok(begin_with(SearchKind::Runbook, (text, limit), own.into_iter().chain(behind)))
    }

    async fn find_dags(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        if self.resources().ledger.is_none() {
            return Ok((Vec::new(), false));
        }
        let own = self.dag(text).await.ok().map(|_| text.to_owned());
        let behind = self.dags(Some(text), limit + 1).await?;
        let behind = behind.into_iter().map(|row| match row {
            Listed::Readable(found) => found.name,
            Listed::Unreadable(row) => row.id,
        });
        Ok(begin_with(SearchKind::Dag, (text, limit), own.into_iter().chain(behind)))
    }

    async fn find_schedules(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        let page = self.recurring_page(None, MAX_LOOKED_AT).await.map_err(|error| self.refused(error))?;
        let is_part = page.len() == MAX_LOOKED_AT;
        let wanted = text.to_lowercase();
        let found = page.into_iter().filter_map(|(_, row)| row.readable()).filter(|action| {
            let name = action.name.as_deref().unwrap_or_default().to_lowercase();
            name.starts_with(&wanted) || action.id.starts_with(text)
        });
        let hits = found.map(|action| SearchHit {
            status: Some(if action.enabled { "active" } else { "paused" }.to_owned()),
            name: action.name,
            ..hit(SearchKind::Schedule, action.id)
        });
        Ok(cut(hits.collect(), limit, is_part))
    }

    async fn find_actions(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        let page = self.actions().page(None, MAX_LOOKED_AT).await.map_err(|error| self.refused(error))?;
        let is_part = page.len() == MAX_LOOKED_AT;
        let found = page.into_iter().filter_map(|(_, row)| row.readable());
        let hits = found.filter_map(|action| {
            let id = action.id.to_string();
            let is_hit = id.starts_with(text) || (!action.label.is_empty() && action.label.starts_with(text));
            let name = Some(action.label).filter(|label| !label.is_empty());
            is_hit.then(|| SearchHit { name, ..hit(SearchKind::Action, id) })
        });
        Ok(cut(hits.collect(), limit, is_part))
    }

    async fn find_batches(&self, text: &str, limit: usize) -> Result<Hits, Refusal> {
        let page = self.batches(None, None, MAX_LOOKED_AT).await?;
        let is_part = page.len() == MAX_LOOKED_AT;
        let found = page.into_iter().filter_map(Listed::readable);
        let found = found
            .filter(|batch| batch.id.to_string().starts_with(text) || batch.runbook_name.starts_with(text));
        let hits = found.map(|batch| SearchHit {
            name: Some(batch.runbook_name),
            ..hit(SearchKind::Batch, batch.id.to_string())
        });
        Ok(cut(hits.collect(), limit, is_part))
    }
}

fn hit(kind: SearchKind, id: String) -> SearchHit {
    SearchHit { kind, id, name: None, status: None }
}

/// Those of ascending names that begin with a text: they come one after the other.
fn begin_with(kind: SearchKind, (text, limit): (&str, usize), names: impl Iterator<Item = String>) -> Hits {
    let hits = names.take_while(|name| name.starts_with(text)).map(|name| hit(kind, name));
    cut(hits.collect(), limit, false)
}

fn cut(mut hits: Vec<SearchHit>, limit: usize, is_part: bool) -> Hits {
    let more = is_part || hits.len() > limit;
    hits.truncate(limit);
    (hits, more)
}
