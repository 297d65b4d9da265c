//! Sites that misbehave: which requests are retried, which pages fail, and which hosts get a pause.

mod faults;
mod on_error;
mod politeness;
mod redirects;
