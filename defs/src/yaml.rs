//! Files to nodes that know file, line and column.
