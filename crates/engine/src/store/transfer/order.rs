//! Whether a stream of content is whole and in order, so that every store refuses the same ones.

use super::content::{ContentHeader, ContentItem, InstanceContent};
use crate::store::{ErrorKind, ProviderError, StartGuard};

/// Checks a stream of content item by item.
#[derive(Debug, Default)]
pub struct ContentOrder {
    header: Option<ContentHeader>,
    section: Section,
    /// The instance whose executions come, with the last execution that came.
    instance: Option<(InstanceContent, u64)>,
    last_instance: Option<String>,
    last_event_id: u64,
    last_id: u64,
    last_record: Option<(String, String)>,
    has_ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Section {
    #[default]
    Start,
    Instances,
    Messages,
    WorkItems,
    Records,
}

fn invalid(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ErrorKind::Invalid, "import", message)
}

impl ContentOrder {
    /// The header, once it has come.
    pub fn header(&self) -> Option<ContentHeader> {
        self.header
    }

    /// Checks the next item.
    ///
    /// # Errors
    /// `Invalid`, with what is wrong.
    pub fn check(&mut self, item: &ContentItem) -> Result<(), ProviderError> {
        if self.has_ended {
            return Err(invalid("the content has ended already"));
        }
        let header = match (item, self.header) {
            (ContentItem::Header(header), None) => {
                self.header = Some(*header);
                return Ok(());
            }
            (ContentItem::Header(_), Some(_)) => return Err(invalid("the content has a second header")),
            (_, None) => return Err(invalid("the content does not begin with a header")),
            (_, Some(header)) => header,
        };
        match item {
            ContentItem::Header(_) => Ok(()),
            ContentItem::Instance(instance) => self.check_instance(instance),
            ContentItem::Execution(execution) => self.check_execution(execution.execution_id),
            ContentItem::Event(event) => self.check_event(event.event_id),
            ContentItem::Message(message) => {
                self.enter(Section::Messages)?;
                self.check_id("message", message.id, header.last_message_id)?;
                self.check_time("message", message.id, message.message.visible_at_ms)?;
                let is_delayed = message.message.visible_at_ms.is_some();
                if message.holds_instance && !is_delayed {
                    let text = format!("message {} holds its instance back until no time", message.id);
                    return Err(invalid(text));
                }
                if message.attempts > 0 && is_delayed && !message.holds_instance {
                    let text =
                        format!("message {} was given back but does not hold its instance", message.id);
                    return Err(invalid(text));
                }
                if message.message.guard == StartGuard::IfPresent {
                    return Err(invalid(format!("message {} has a guard that was met already", message.id)));
                }
                Ok(())
            }
            ContentItem::WorkItem(item) => {
                self.enter(Section::WorkItems)?;
                self.check_id("work item", item.id, header.last_work_item_id)?;
                self.check_time("work item", item.id, item.delayed_until_ms)
            }
            ContentItem::Record(record) => {
                self.enter(Section::Records)?;
                let name = (record.kind.clone(), record.id.clone());
                if self.last_record.as_ref().is_some_and(|last| *last >= name) {
                    return Err(invalid(format!("the record {} {} is out of order", name.0, name.1)));
                }
                if record.version > header.last_record_version {
                    return Err(invalid(format!(
                        "the record {} {} has a version beyond the last",
                        name.0, name.1
                    )));
                }
                self.last_record = Some(name);
                Ok(())
            }
        }
    }

    /// Checks that the stream may end here, and ends it.
    ///
    /// # Errors
    /// `Invalid`, with what is missing.
    pub fn check_end(&mut self) -> Result<ContentHeader, ProviderError> {
        self.check_instance_is_whole()?;
        self.has_ended = true;
        self.header.ok_or_else(|| invalid("the content has no header"))
    }

    fn enter(&mut self, section: Section) -> Result<(), ProviderError> {
        if section < self.section {
            return Err(invalid(format!("{section:?} come after {:?}", self.section)));
        }
        if section > self.section {
            self.check_instance_is_whole()?;
            self.instance = None;
            self.section = section;
            self.last_id = 0;
        }
        Ok(())
    }

    fn check_instance_is_whole(&self) -> Result<(), ProviderError> {
        match &self.instance {
            Some((instance, last)) if *last != instance.current_execution_id => {
                let (id, current) = (&instance.instance_id, instance.current_execution_id);
                Err(invalid(format!("the current execution {current} of {id} is missing")))
            }
            _ => Ok(()),
        }
    }

    fn check_instance(&mut self, instance: &InstanceContent) -> Result<(), ProviderError> {
        self.enter(Section::Instances)?;
        self.check_instance_is_whole()?;
        let id = &instance.instance_id;
        if self.last_instance.as_ref().is_some_and(|last| last >= id) {
            return Err(invalid(format!("the instance {id} is out of order")));
        }
        self.last_instance = Some(id.clone());
        self.instance = Some((instance.clone(), 0));
        Ok(())
    }

    fn check_execution(&mut self, execution_id: u64) -> Result<(), ProviderError> {
        let Some((instance, last)) = &mut self.instance else {
            return Err(invalid(format!("the execution {execution_id} belongs to no instance")));
        };
        if execution_id <= *last || execution_id > instance.current_execution_id {
            let id = &instance.instance_id;
            return Err(invalid(format!("the execution {execution_id} of {id} is out of order")));
        }
        *last = execution_id;
        self.last_event_id = 0;
        Ok(())
    }

    fn check_event(&mut self, event_id: u64) -> Result<(), ProviderError> {
        match &self.instance {
            Some((_, execution_id)) if *execution_id > 0 && event_id > self.last_event_id => {
                self.last_event_id = event_id;
                Ok(())
            }
            Some((instance, _)) => {
                Err(invalid(format!("event {event_id} of {} is out of order", instance.instance_id)))
            }
            None => Err(invalid(format!("event {event_id} belongs to no execution"))),
        }
    }

    fn check_id(&mut self, what: &str, id: u64, highest: u64) -> Result<(), ProviderError> {
        if id <= self.last_id || id > highest {
            return Err(invalid(format!("{what} {id} is out of order")));
        }
        self.last_id = id;
        Ok(())
    }

    fn check_time(&self, what: &str, id: u64, at_ms: Option<u64>) -> Result<(), ProviderError> {
        let taken_at_ms = self.header.map_or(0, |header| header.taken_at_ms);
        if at_ms.is_some_and(|at_ms| at_ms <= taken_at_ms) {
            return Err(invalid(format!("{what} {id} is delayed until a time that had passed")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::core::peek_lock::Standing;
    use crate::store::{
        ExecutionContent, ExecutionStatus, MessageContent, OrchestratorMessage, Record, StoredEvent,
    };
    use bytes::Bytes;
    use std::collections::BTreeMap;

    fn header() -> ContentItem {
        ContentItem::Header(ContentHeader {
            taken_at_ms: 100,
            last_message_id: 10,
            last_work_item_id: 10,
            last_record_version: 10,
        })
    }

    fn instance(id: &str) -> ContentItem {
        ContentItem::Instance(Box::new(InstanceContent {
            instance_id: id.to_owned(),
            orchestration_name: None,
            orchestration_version: None,
            parent_instance_id: None,
            current_execution_id: 2,
            created_at_ms: 1,
            updated_at_ms: 1,
            revision: 1,
            custom_status: None,
            custom_status_version: 0,
            labels: BTreeMap::new(),
        }))
    }

    fn execution(execution_id: u64) -> ContentItem {
        ContentItem::Execution(Box::new(ExecutionContent {
            execution_id,
            status: ExecutionStatus::Running,
            output: None,
            pinned_version: None,
            incarnation: None,
            started_at_ms: 1,
            completed_at_ms: None,
        }))
    }

    fn event(event_id: u64) -> ContentItem {
        ContentItem::Event(StoredEvent { event_id, data: Bytes::new() })
    }

    fn message(id: u64, visible_at_ms: u64) -> ContentItem {
        let standing = Standing { id, visible_at_ms, attempts: 0 };
        let message = MessageContent::standing(standing, OrchestratorMessage::new("i", "m"), 0);
        ContentItem::Message(Box::new(message))
    }

    fn record(id: &str, version: u64) -> ContentItem {
        let (kind, id, body) = ("k".to_owned(), id.to_owned(), Bytes::new());
        ContentItem::Record(Box::new(Record {
            kind,
            id,
            version,
            due_at_ms: None,
            expires_at_ms: None,
            body,
        }))
    }

    fn check(items: &[ContentItem]) -> Result<(), String> {
        let mut order = ContentOrder::default();
        for item in items {
            order.check(item).map_err(|error| error.message().to_owned())?;
        }
        order.check_end().map(drop).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn content_in_order_passes() {
        let items = [
            header(),
            instance("a"),
            execution(1),
            event(1),
            event(2),
            execution(2),
            event(1),
            instance("b"),
            execution(2),
            message(1, 101),
            message(3, 200),
            record("x", 4),
            record("y", 2),
        ];
        assert_eq!(check(&items), Ok(()));
        assert_eq!(check(&items[..1]), Ok(()));
    }

    #[test]
    fn nothing_comes_after_the_end() {
        let mut order = ContentOrder::default();
        order.check(&header()).unwrap();
        order.check_end().unwrap();
        order.check_end().unwrap();
        assert!(order.check(&instance("a")).unwrap_err().message().contains("has ended already"));
    }

    #[test]
    fn content_out_of_order_is_refused_with_a_reason() {
        for (items, reason) in [
            (vec![], "no header"),
            (vec![instance("a")], "does not begin with a header"),
            (vec![header(), header()], "second header"),
            (vec![header(), execution(1)], "belongs to no instance"),
            (vec![header(), event(1)], "belongs to no execution"),
            (vec![header(), instance("a"), event(1)], "out of order"),
            (vec![header(), instance("a"), execution(1)], "current execution 2 of a is missing"),
            (vec![header(), instance("a"), execution(1), instance("b")], "of a is missing"),
            (vec![header(), instance("a"), execution(1), message(1, 101)], "of a is missing"),
            (vec![header(), instance("a"), execution(3)], "out of order"),
            (vec![header(), instance("a"), execution(2), execution(1)], "out of order"),
            (vec![header(), instance("a"), execution(2), event(2), event(2)], "out of order"),
            (vec![header(), instance("b"), execution(2), instance("a")], "out of order"),
            (vec![header(), message(2, 101), message(2, 101)], "out of order"),
            (vec![header(), message(11, 101)], "out of order"),
            (vec![header(), message(1, 100)], "a time that had passed"),
            (vec![header(), record("x", 1), message(1, 101)], "Messages come after Records"),
            (vec![header(), record("x", 1), record("x", 2)], "out of order"),
            (vec![header(), record("x", 11)], "beyond the last"),
        ] {
            let error = check(&items).unwrap_err();
            assert!(error.contains(reason), "expected {reason:?}, got {error:?}");
        }
    }
}
