//! Bodies of requests on their way in: whether the server waits for the peer, since when, and how much memory the parts
//! take that have come so far.
//!
//! A connection whose requests all wait for their bodies may be ended for the sake of others, as a quiet one may
//! (`connections`): when all places are taken, and when the bodies of all connections take too much memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::activity::Activity;
use super::connections::Connections;

/// The body of a request. What it brings counts until it has ended.
pub struct ArrivingBody {
    inner: Incoming,
    arrival: Arrival,
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        if !self.inner.is_end_stream() {
            self.arrival.activity.leave_body();
        }
    }
}

/// What is known of a body that arrives.
struct Arrival {
    connections: Arc<Connections>,
    activity: Arc<Activity>,
    bytes: usize,
    is_awaited: bool,
}

impl ArrivingBody {
    /// The body of a request of a connection.
    pub fn new(inner: Incoming, connections: Arc<Connections>, activity: Arc<Activity>) -> Self {
        ArrivingBody { inner, arrival: Arrival { connections, activity, bytes: 0, is_awaited: false } }
    }
}

impl Body for ArrivingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Pending => self.arrival.wait(),
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                // The last part goes to its reader whole; it takes no memory while others are awaited.
                if !self.inner.is_end_stream() {
                    self.arrival.add(bytes);
                }
            }
            Poll::Ready(_) => self.arrival.end(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Arrival {
    fn wait(&mut self) {
        if !std::mem::replace(&mut self.is_awaited, true) {
            self.activity.begin_arrival();
        }
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.activity.add_arriving(bytes);
        self.connections.add_arriving(bytes);
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_awaited) {
            self.activity.end_arrival();
        }
        let bytes = self.activity.remove_arriving(std::mem::take(&mut self.bytes));
        self.connections.remove_arriving(bytes);
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.end();
    }
}
