//! A batch of items as columns: the array parameters of the database's one function.

use postgres_types::{ToSql, Type};
use segno::store::{
    AckOrchestrationItem, AfterAck, CustomStatusChange, ExecutionMetadata, Expect, Guards,
    OrchestratorMessage, RecordWrite, StoredEvent, TurnLock, WorkerMessage,
};
use tokio_postgres::types as postgres_types;

use crate::item::{Item, guard_code};
use crate::number::{bits, span, status_code, time};
use crate::version_key::version_key;
use crate::waiting::{Held, Pending};

/// A parameter and its type.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

macro_rules! columns {
    ($(#[doc = $doc:literal] $list:ident { $($name:ident : $of:ty => $type:ident,)* })*) => {
        /// All items of a call, column by column, in the order of the function's parameters.
        #[derive(Debug, Default)]
        pub(crate) struct Columns<'a> {
            $($($name: Vec<$of>,)*)*
        }

        /// The lists that the columns make up: each a type of the schema, and how many columns it has.
        pub(crate) const LISTS: &[(&str, usize)] = &[$((stringify!($list), [$(stringify!($name)),*].len()),)*];

        impl<'a> Columns<'a> {
            /// The parameters of the call.
            pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
                vec![$($((&self.$name as &(dyn ToSql + Sync), Type::$type),)*)*]
            }
        }
    };
}

columns! {
    /// One entry per item.
    item_list {
        kind: i16 => INT2_ARRAY,
        token: Option<i64> => INT8_ARRAY,
        instance: Option<&'a str> => TEXT_ARRAY,
        activity: Option<i64> => INT8_ARRAY,
        execution: Option<i64> => INT8_ARRAY,
        ms: Option<i64> => INT8_ARRAY,
        flag: bool => BOOL_ARRAY,
    }
    /// One entry per turn, or per append.
    turn_list {
        t_item: i32 => INT4_ARRAY,
        t_stores: bool => BOOL_ARRAY,
        t_first: Option<i64> => INT8_ARRAY,
        t_last: Option<i64> => INT8_ARRAY,
        t_sorted: bool => BOOL_ARRAY,
        t_status: Option<i16> => INT2_ARRAY,
        t_output: Option<&'a [u8]> => BYTEA_ARRAY,
        t_name: Option<&'a str> => TEXT_ARRAY,
        t_version: Option<&'a str> => TEXT_ARRAY,
        t_parent: Option<&'a str> => TEXT_ARRAY,
        t_pin: Option<String> => TEXT_ARRAY,
        t_pin_key: Option<String> => TEXT_ARRAY,
        t_incarnation: Option<i64> => INT8_ARRAY,
        t_custom: i16 => INT2_ARRAY,
        t_custom_status: Option<&'a [u8]> => BYTEA_ARRAY,
        t_labelled: bool => BOOL_ARRAY,
    }
    /// One entry per label.
    label_list {
        l_item: i32 => INT4_ARRAY,
        l_key: &'a str => TEXT_ARRAY,
        l_value: &'a str => TEXT_ARRAY,
    }
    /// One entry per event.
    event_list {
        e_item: i32 => INT4_ARRAY,
        e_id: i64 => INT8_ARRAY,
        e_data: &'a [u8] => BYTEA_ARRAY,
    }
    /// One entry per message.
    message_list {
        m_item: i32 => INT4_ARRAY,
        m_instance: &'a str => TEXT_ARRAY,
        m_visible: Option<i64> => INT8_ARRAY,
        m_delay: Option<i64> => INT8_ARRAY,
        m_timer_execution: Option<i64> => INT8_ARRAY,
        m_timer: Option<i64> => INT8_ARRAY,
        m_guard: i16 => INT2_ARRAY,
        m_body: &'a [u8] => BYTEA_ARRAY,
    }
    /// One entry per activity.
    activity_list {
        a_item: i32 => INT4_ARRAY,
        a_instance: &'a str => TEXT_ARRAY,
        a_execution: i64 => INT8_ARRAY,
        a_id: i64 => INT8_ARRAY,
        a_lane: String => TEXT_ARRAY,
        a_session: Option<&'a str> => TEXT_ARRAY,
        a_visible: Option<i64> => INT8_ARRAY,
        a_body: &'a [u8] => BYTEA_ARRAY,
    }
    /// One entry per activity that is taken back.
    cancel_list {
        c_item: i32 => INT4_ARRAY,
        c_instance: &'a str => TEXT_ARRAY,
        c_execution: i64 => INT8_ARRAY,
        c_id: i64 => INT8_ARRAY,
    }
    /// One entry per timer that is taken back.
    timer_list {
        x_item: i32 => INT4_ARRAY,
        x_execution: i64 => INT8_ARRAY,
        x_timer: i64 => INT8_ARRAY,
    }
    /// One entry per record.
    record_list {
        r_item: i32 => INT4_ARRAY,
        r_kind: &'a str => TEXT_ARRAY,
        r_id: &'a str => TEXT_ARRAY,
        r_expect: i16 => INT2_ARRAY,
        r_version: Option<i64> => INT8_ARRAY,
        r_delete: bool => BOOL_ARRAY,
        r_due: Option<i64> => INT8_ARRAY,
        r_life: Option<i64> => INT8_ARRAY,
        r_body: &'a [u8] => BYTEA_ARRAY,
    }
}

/// The routing tag of an activity as the database keeps it: no tag is not the empty tag.
pub(crate) fn lane(tag: Option<&str>) -> String {
    tag.map_or_else(String::new, |tag| format!(":{tag}"))
}

/// The routing tag that a lane stands for.
pub(crate) fn tag(lane: &str) -> Option<String> {
    lane.strip_prefix(':').map(str::to_owned)
}

impl<'a> Columns<'a> {
    /// The columns of some items.
    pub(crate) fn of(items: &'a [Pending]) -> Self {
        let mut columns = Columns::default();
        for (number, pending) in (1..).zip(items) {
            columns.push(number, pending);
        }
        columns
    }

    fn push(&mut self, number: i32, pending: &'a Pending) {
        let (item, held) = (&pending.item, pending.held.as_ref());
        let mut instance = held.map(Held::instance);
        let (mut execution, mut ms, mut flag) = (None, None, false);
        match item {
            Item::Turn(turn) => {
                execution = Some(bits(turn.execution_id));
                flag = turn.after == AfterAck::KeepLock;
                if let TurnLock::Activity { incarnation } = turn.lock {
                    ms = Some(bits(incarnation));
                }
                self.push_turn(number, turn);
            }
            Item::Append { instance: id, execution_id, events } => {
                execution = Some(bits(*execution_id));
                instance = Some(id.as_str());
                self.push_metadata(number, None, events);
            }
            Item::GiveBackTurn(back) | Item::GiveBackActivity(back) => {
                ms = Some(back.delay_ms);
                flag = back.ignore_attempt;
            }
            Item::RenewTurn { for_ms, .. } | Item::RenewActivity { for_ms, .. } => ms = Some(*for_ms),
            Item::Records(batch) => flag = batch.guards == Guards::Refuse,
            Item::Work(_) | Item::Message { .. } | Item::Activity(_) => {}
        }
        self.kind.push(item.kind());
        self.token.push(item.token().map(|token| bits(token.0)));
        self.activity.push(held.and_then(Held::activity));
        self.execution.push(execution);
        self.ms.push(ms);
        self.flag.push(flag);
        self.instance.push(instance);
        let delay_ms = match item {
            Item::Message { delay_ms, .. } => *delay_ms,
            _ => None,
        };
        item.messages().iter().for_each(|message| self.push_message(number, message, delay_ms));
        item.activities().iter().for_each(|message| self.push_activity(number, message));
        item.records().iter().for_each(|write| self.push_record(number, write));
    }

    fn push_turn(&mut self, number: i32, turn: &'a AckOrchestrationItem) {
        self.push_metadata(number, Some(&turn.metadata), &turn.history_delta);
        for activity in &turn.cancelled_activities {
            self.c_item.push(number);
            self.c_instance.push(&activity.instance);
            self.c_execution.push(bits(activity.execution_id));
            self.c_id.push(bits(activity.activity_id));
        }
        for timer in &turn.cancelled_timers {
            self.x_item.push(number);
            self.x_execution.push(bits(timer.execution_id));
            self.x_timer.push(bits(timer.timer_id));
        }
    }

    fn push_metadata(
        &mut self,
        number: i32,
        metadata: Option<&'a ExecutionMetadata>,
        events: &'a [StoredEvent],
    ) {
        let says_something = metadata.is_some_and(|metadata| *metadata != ExecutionMetadata::default());
        let pin = metadata.and_then(|metadata| metadata.pinned_version.as_ref());
        let (custom, custom_status) = match metadata.and_then(|metadata| metadata.custom_status.as_ref()) {
            None => (0, None),
            Some(CustomStatusChange::Set(status)) => (1, Some(status.as_ref())),
            Some(CustomStatusChange::Clear) => (2, None),
        };
        let labels = metadata.and_then(|metadata| metadata.labels.as_ref());
        self.t_item.push(number);
        self.t_stores.push(says_something || !events.is_empty());
        self.t_first.push(events.iter().map(|event| bits(event.event_id)).min());
        self.t_last.push(events.iter().map(|event| bits(event.event_id)).max());
        self.t_sorted.push(events.is_sorted_by(|one, next| one.event_id < next.event_id));
        self.t_status.push(metadata.and_then(|metadata| metadata.status).map(status_code));
        self.t_output.push(metadata.and_then(|metadata| metadata.output.as_deref()));
        self.t_name.push(metadata.and_then(|metadata| metadata.orchestration_name.as_deref()));
        self.t_version.push(metadata.and_then(|metadata| metadata.orchestration_version.as_deref()));
        self.t_parent.push(metadata.and_then(|metadata| metadata.parent_instance_id.as_deref()));
        self.t_pin.push(pin.map(ToString::to_string));
        self.t_pin_key.push(pin.map(version_key));
        self.t_incarnation.push(metadata.and_then(|metadata| metadata.incarnation).map(bits));
        self.t_custom.push(custom);
        self.t_custom_status.push(custom_status);
        self.t_labelled.push(labels.is_some());
        for (key, value) in labels.into_iter().flatten() {
            self.l_item.push(number);
            self.l_key.push(key);
            self.l_value.push(value);
        }
        for event in events {
            self.e_item.push(number);
            self.e_id.push(bits(event.event_id));
            self.e_data.push(&event.data);
        }
    }

    fn push_message(&mut self, number: i32, message: &'a OrchestratorMessage, delay_ms: Option<i64>) {
        self.m_item.push(number);
        self.m_instance.push(&message.instance);
        self.m_visible.push(message.visible_at_ms.map(time));
        self.m_delay.push(delay_ms);
        self.m_timer_execution.push(message.timer.map(|timer| bits(timer.execution_id)));
        self.m_timer.push(message.timer.map(|timer| bits(timer.timer_id)));
        self.m_guard.push(guard_code(message.guard));
        self.m_body.push(&message.body);
    }

    fn push_activity(&mut self, number: i32, message: &'a WorkerMessage) {
        self.a_item.push(number);
        self.a_instance.push(&message.activity.instance);
        self.a_execution.push(bits(message.activity.execution_id));
        self.a_id.push(bits(message.activity.activity_id));
        self.a_lane.push(lane(message.tag.as_deref()));
        self.a_session.push(message.session_id.as_deref());
        self.a_visible.push(message.visible_at_ms.map(time));
        self.a_body.push(&message.body);
    }

    fn push_record(&mut self, number: i32, write: &'a RecordWrite) {
        let (kind, id) = write.key();
        let (RecordWrite::Put { expect, .. } | RecordWrite::Delete { expect, .. }) = write;
        let (expect, version) = match expect {
            Expect::Anything => (0, None),
            Expect::Absent => (1, None),
            Expect::Version(version) => (2, Some(bits(*version))),
        };
        self.r_item.push(number);
        self.r_kind.push(kind);
        self.r_id.push(id);
        self.r_expect.push(expect);
        self.r_version.push(version);
        match write {
            RecordWrite::Put { due_at_ms, time_to_live, body, .. } => {
                self.r_delete.push(false);
                self.r_due.push(due_at_ms.map(time));
                self.r_life.push(time_to_live.map(span));
                self.r_body.push(body);
            }
            RecordWrite::Delete { .. } => {
                self.r_delete.push(true);
                self.r_due.push(None);
                self.r_life.push(None);
                self.r_body.push(&[]);
            }
        }
    }
}
