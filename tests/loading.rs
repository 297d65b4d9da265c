//! Pages from sites that misbehave: what is tried again, what is given up, who has to wait.

mod faults;
mod on_error;
mod politeness;
mod redirects;
