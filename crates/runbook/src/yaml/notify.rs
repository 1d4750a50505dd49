//! `notify`: the function that is called when people have to know something.

use segno_actions::document::{Field, PartReader, Tree};

use super::keys::NOTIFY;
use super::reader::Reader;
use crate::definition::{NoticeEvent, Notify};
use crate::names::NameKind;

/// What `on` can have.
const EVENTS: [(&str, NoticeEvent); 3] = [
    ("approval_wanted", NoticeEvent::ApprovalWanted),
    ("phase_failed", NoticeEvent::PhaseFailed),
    ("budget_spent", NoticeEvent::BudgetSpent),
];

impl Reader<'_> {
    /// Reads `notify`.
    pub fn notify(&mut self, field: Field<'_>) -> Option<Notify> {
        let fields = self.fields(field, &NOTIFY)?;
        let function = self
            .required(&fields, "function", "tell-operators")
            .and_then(|field| self.name(&field, NameKind::Function));
        let on = match fields.get("on") {
            Some(field) => self.events(&field),
            None => EVENTS.iter().map(|(_, event)| *event).collect(),
        };
        Some(Notify { function: function?, on })
    }

    fn events(&mut self, field: &Field<'_>) -> Vec<NoticeEvent> {
        let items = self.list(field, EVENTS.len());
        if matches!(&field.node.tree, Tree::List(items) if items.is_empty()) {
            let problem = field.error("there is no event, so nothing would be sent");
            self.push(problem.advice("name at least one, or leave out on for all of them"));
        }
        items.into_iter().filter_map(|item| self.choice(&item, &EVENTS)).collect()
    }
}
