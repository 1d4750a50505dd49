//! Bodies of answers on their way out: when a peer reads them too slowly, and how much memory they take until
//! they are read.
//!
//! An answer is given out in pieces, each when the one before it is on its way. So its request is under way,
//! and its bytes count, until the peer has read nearly all of it. When the answers of all connections take too
//! much memory, the connection that has taken the longest to read its own gives way (`connections`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};

use super::activity::{Activity, UnderWay};
use super::connections::Connections;

/// Most bytes that are given out at once. Answers that are not larger do not count.
const PIECE_BYTES: usize = 64 * 1024;

/// The body of an answer, whose request is under way until it ends.
pub struct AnswerBody {
    inner: Body,
    /// What is left of the last part.
    rest: Bytes,
    unread: Unread,
    under_way: UnderWay,
}

/// Bytes of an answer that the peer has not read.
struct Unread {
    connections: Arc<Connections>,
    activity: Arc<Activity>,
    bytes: usize,
}

impl AnswerBody {
    /// The body of the answer to a request of a connection.
    pub fn new(inner: Body, under_way: UnderWay, connections: Arc<Connections>) -> Self {
        let mut unread = Unread { connections, activity: under_way.activity().clone(), bytes: 0 };
        let bytes = inner.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        unread.set(bytes.unwrap_or(0));
        AnswerBody { inner, rest: Bytes::new(), unread, under_way }
    }

    /// The next piece of a part that is larger than one.
    fn cut(&mut self, part: Bytes) -> Bytes {
        self.rest = part;
        self.rest.split_to(self.rest.len().min(PIECE_BYTES))
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(Frame::data(self.cut(rest)))));
        }
        let frame = match std::task::ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            ended => return Poll::Ready(ended),
        };
        let part = match frame.into_data() {
            Ok(part) => part,
            Err(frame) => return Poll::Ready(Some(Ok(frame))),
        };
        // An answer whose size was not known counts part by part.
        self.unread.set(self.unread.bytes.max(part.len()));
        Poll::Ready(Some(Ok(Frame::data(self.cut(part)))))
    }
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = self.poll_piece(context);
        if polled.is_pending() {
            // All that there was is on its way, and nothing follows for now.
            self.unread.set(0);
        }
        self.under_way.set_handed_over(matches!(polled, Poll::Ready(Some(Ok(_)))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

impl Unread {
    fn set(&mut self, bytes: usize) {
        let bytes = if bytes > PIECE_BYTES { bytes } else { 0 };
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes > before {
            self.activity.add_unread(bytes - before);
            self.connections.add_unread(bytes - before);
        } else if before > bytes {
            self.connections.remove_unread(self.activity.remove_unread(before - bytes));
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.set(0);
    }
}
