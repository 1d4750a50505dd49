//! What a message of the bus is, or the reason with which it becomes a dead letter. Pure.

use segno::Payload;

use crate::bus::{DeadLetterReason, Message};
use crate::drive::{MESSAGE_TYPE, SEGNO, SENDER};
use crate::message::{CallResult, EventMessage, EventProblem, ResultMessage, ResultProblem};
use crate::rows::BatchId;

/// Reasons of dead letters; those of results are the shipped system's.
pub(super) const DESERIALIZATION_FAILED: &str = "DeserializationFailed";
pub(super) const UNKNOWN_MESSAGE_TYPE: &str = "UnknownMessageType";
pub(super) const INVALID_CORRELATION_DATA: &str = "InvalidCorrelationData";
pub(super) const UNKNOWN_ROW: &str = "UnknownRow";
pub(super) const STORED_DATA_UNREADABLE: &str = "StoredDataUnreadable";

/// An event, unless this program has sent it: then its rows have changed already.
pub(super) fn event(message: &Message) -> Result<Option<EventMessage>, DeadLetterReason> {
    if property(message, SENDER) == Some(SEGNO) {
        return Ok(None);
    }
    let event = EventMessage::read_as(message.body.as_bytes(), property(message, MESSAGE_TYPE));
    event.map(Some).map_err(|problem| {
        let reason = match problem {
            EventProblem::NotJson(_) | EventProblem::Fields(_) => DESERIALIZATION_FAILED,
            EventProblem::NoType | EventProblem::UnknownType(_) | EventProblem::OtherType { .. } => {
                UNKNOWN_MESSAGE_TYPE
            }
        };
        DeadLetterReason::new(reason, problem.to_string())
    })
}

/// A result, and the batch that it is for.
pub(super) fn result(message: &Message) -> Result<(BatchId, CallResult), DeadLetterReason> {
    let malformed = |problem: String| DeadLetterReason::new(DESERIALIZATION_FAILED, problem);
    // The rule of all JSON that is stored: size, depth, numbers that every reader can take.
    Payload::from_json(&message.body).map_err(|error| malformed(error.to_string()))?;
    let read = ResultMessage::read(message.body.as_bytes()).map_err(|error| malformed(error.to_string()))?;
    let (batch, job_id) = (read.batch_id, read.job_id.clone());
    let result = read.into_call_result().map_err(|problem| {
        let text = match problem {
            ResultProblem::MissingCorrelationData => {
                format!("the result of {job_id:?} has no correlationData")
            }
            ResultProblem::InvalidCorrelationData => {
                format!("the correlationData of the result of {job_id:?} name no row")
            }
        };
        DeadLetterReason::new(&problem.to_string(), text)
    })?;
    match batch {
        Some(batch) => Ok((batch, result)),
        None => {
            let text = format!("the result of {job_id:?} has no batchId");
            Err(DeadLetterReason::new(INVALID_CORRELATION_DATA, text))
        }
    }
}

/// A property, whatever the letter case of its name.
fn property<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let found = message.properties.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<T: std::fmt::Debug>(read: Result<T, DeadLetterReason>) -> (String, String) {
        let reason = read.unwrap_err();
        (reason.reason, reason.description)
    }

    #[test]
    fn events_are_read_in_either_letter_case_and_others_have_a_reason() {
        let good = r#"{"messageType":"phase-due","runbookName":"r","runbookVersion":3,"batchId":42,"phaseExecutionId":108,"phaseName":"p","offsetMinutes":0,"dueAt":null,"memberIds":[1]}"#;
        let pascal = good.replace("messageType", "MessageType").replace("batchId", "BatchId");
        let untyped = good.replace(r#""messageType":"phase-due","#, "");
        for (body, named) in [(good, None), (&pascal, Some("Phase-Due")), (&untyped, Some("phase-due"))] {
            let mut message = Message::json("m", body);
            if let Some(named) = named {
                message = message.property("messagetype", named);
            }
            assert_eq!(event(&message).unwrap().unwrap().batch_id(), BatchId(42));
        }
        for (body, named, why, words) in [
            ("{", None, DESERIALIZATION_FAILED, "not a JSON object"),
            ("[1]", None, DESERIALIZATION_FAILED, "not a JSON object"),
            (r#"{"messageType":"phase-due"}"#, None, DESERIALIZATION_FAILED, "runbookName"),
            (r#"{"messageType":"tea-time"}"#, None, UNKNOWN_MESSAGE_TYPE, "\"tea-time\""),
            ("{}", None, UNKNOWN_MESSAGE_TYPE, "neither the property MessageType"),
            (good, Some("batch-init"), UNKNOWN_MESSAGE_TYPE, "the property MessageType is \"batch-init\""),
        ] {
            let mut message = Message::json("m", body);
            if let Some(named) = named {
                message = message.property(MESSAGE_TYPE, named);
            }
            let (found, text) = reason(event(&message));
            assert_eq!(found, why, "{body}");
            assert!(text.contains(words), "{text}");
        }
        let own = Message::json("m", good).property(SENDER, SEGNO);
        assert_eq!(event(&own).unwrap(), None);
    }

    #[test]
    fn results_without_what_names_their_row_have_the_reasons_of_the_shipped_system() {
        let good = r#"{"JobId":"step-1042","BatchId":42,"WorkerId":"cloud-01","Status":"Success","Result":true,
            "CorrelationData":{"StepExecutionId":1042,"IsInitStep":false}}"#;
        let (batch, read) = result(&Message::json("m", good)).unwrap();
        assert_eq!(
            (batch, read.job_id.as_str(), read.pool.as_deref()),
            (BatchId(42), "step-1042", Some("cloud-01"))
        );
        for (body, why) in [
            ("{", DESERIALIZATION_FAILED),
            (r#"{"jobId":"step-1"}"#, DESERIALIZATION_FAILED),
            (r#"{"jobId":"step-1","batchId":42,"status":"success"}"#, "MissingCorrelationData"),
            (
                r#"{"jobId":"step-1","batchId":42,"status":"success","correlationData":{}}"#,
                INVALID_CORRELATION_DATA,
            ),
            (
                r#"{"jobId":"step-1","status":"success","correlationData":{"stepExecutionId":1}}"#,
                INVALID_CORRELATION_DATA,
            ),
        ] {
            assert_eq!(reason(result(&Message::json("m", body))).0, why, "{body}");
        }
        let removal = r#"{"jobId":"removed-7-0","batchId":42,"status":"success"}"#;
        result(&Message::json("m", removal)).unwrap();
    }
}
