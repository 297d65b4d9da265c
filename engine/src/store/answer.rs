//! Answers questions about a ledger in SQLite tables, for the store of one machine and of a cluster.

use super::sqlite::SqliteTables;
use super::{Answer, Question};
use crate::ledger::{Ledger, TableResult, Tables};

/// Answers a question from the applied state.
pub(crate) fn answer(
    ledger: &mut Ledger<SqliteTables>,
    question: &Question,
) -> TableResult<Answer> {
    let run = ledger.core().run.as_ref();
    let extent = run.map_or((0, 0), |run| (run.output_seq, run.plan.appenders));
    Ok(match question {
        Question::Run => Answer::Run(run.cloned().map(Box::new)),
        Question::Crossed { session, name } => Answer::Crossed(ledger.crossed(*session, name)),
        Question::Flush => Answer::Flushed,
        Question::Blob(hash) => Answer::Blob(ledger.tables_mut().blob(*hash)?),
        Question::Output { appender, after, bytes_max } => {
            Answer::Output(ledger.tables_mut().output(*appender, *after, *bytes_max, extent)?)
        }
        Question::CanonicalOutput { appender, after, last, bytes_max } => {
            let (tables, which) = (ledger.tables_mut(), (*after, *last));
            Answer::Output(tables.canonical_output(*appender, which, *bytes_max, extent)?)
        }
        Question::Failed { after, limit } => {
            Answer::Failed(ledger.tables_mut().failed(*after, *limit)?)
        }
    })
}
