//! Parses the steps of a path: axes, node tests and predicates.

use crate::html::LocalName;

use super::XPathError;
use super::expression::{Axis, NodeTest, Predicate, Step};
use super::lexer::{Name, Token};
use super::parser::Parser;
use super::simplify;

impl Parser {
    pub(super) fn step_follows(&self) -> bool {
        matches!(
            self.peek(),
            Token::Dot
                | Token::DotDot
                | Token::At
                | Token::Star
                | Token::Name(_)
                | Token::PrefixStar(_)
        )
    }

    /// Steps one after the other, the first without a slash before it.
    pub(super) fn steps(&mut self, steps: &mut Vec<Step>) -> Result<(), XPathError> {
        let step = self.step()?;
        steps.push(step);
        self.more_steps(steps)
    }

    /// Steps each with a slash before it, as many as there are.
    pub(super) fn more_steps(&mut self, steps: &mut Vec<Step>) -> Result<(), XPathError> {
        loop {
            if self.skip_if(&Token::SlashSlash) {
                steps.push(Step::plain(Axis::DescendantOrSelf, NodeTest::Any));
            } else if !self.skip_if(&Token::Slash) {
                return Ok(());
            }
            let step = self.step()?;
            steps.push(step);
        }
    }

    fn step(&mut self) -> Result<Step, XPathError> {
        if self.skip_if(&Token::Dot) {
            return Ok(Step::plain(Axis::Itself, NodeTest::Any));
        }
        if self.skip_if(&Token::DotDot) {
            return Ok(Step::plain(Axis::Parent, NodeTest::Any));
        }
        let axis = self.axis()?;
        let test = self.node_test()?;
        let predicates = self.predicates()?;
        Ok(Step { axis, test, predicates })
    }

    fn axis(&mut self) -> Result<Axis, XPathError> {
        if self.skip_if(&Token::At) {
            return Ok(Axis::Attribute);
        }
        let Token::Name(name) = self.peek() else {
            return Ok(Axis::Child);
        };
        if *self.peek_after() != Token::Colons {
            return Ok(Axis::Child);
        }
        let found = Axis::ALL.iter().find(|(known, _)| *known == name.folded);
        let Some((_, axis)) = found else {
            let known = Axis::ALL.iter().map(|(known, _)| *known);
            return Err(self.unknown("axis", &name.folded, known));
        };
        self.skip();
        self.skip();
        Ok(*axis)
    }

    fn node_test(&mut self) -> Result<NodeTest, XPathError> {
        let test = match self.peek().clone() {
            Token::Star => NodeTest::Named,
            Token::PrefixStar(Name { folded, given }) => {
                NodeTest::Prefix(folded.into(), given.map(Into::into))
            }
            Token::Name(name) if *self.peek_after() == Token::OpenParen => {
                return self.node_type(&name.folded);
            }
            Token::Name(Name { folded, given }) => {
                NodeTest::Name(LocalName::from(folded), given.map(LocalName::from))
            }
            other => {
                let why = format!("expected a name, `*` or `text()`, found {}", other.described());
                return Err(self.wrong(why));
            }
        };
        self.skip();
        Ok(test)
    }

    fn node_type(&mut self, name: &str) -> Result<NodeTest, XPathError> {
        let test = match name {
            "node" => NodeTest::Any,
            "text" => NodeTest::Text,
            "comment" => NodeTest::Comment,
            "processing-instruction" => NodeTest::Nothing,
            _ => {
                let why = format!("`{name}()` cannot stand in a path after `/` or `::`");
                return Err(self.wrong(why));
            }
        };
        self.skip();
        self.skip();
        if test == NodeTest::Nothing && matches!(self.peek(), Token::Literal(_)) {
            self.skip();
        }
        self.expect(&Token::CloseParen, "to close `(`")?;
        Ok(test)
    }

    /// Leaves `height` at the highest of what was there before and the predicates read.
    pub(super) fn predicates(&mut self) -> Result<Vec<Predicate>, XPathError> {
        let mut height = self.height;
        let mut predicates = Vec::new();
        while self.skip_if(&Token::OpenBracket) {
            let condition = self.expression()?;
            height = height.max(self.height);
            self.expect(&Token::CloseBracket, "to close `[`")?;
            predicates.push(simplify::predicate(condition));
        }
        self.height = height;
        Ok(predicates)
    }
}

pub(super) fn is_node_type(name: &str) -> bool {
    matches!(name, "node" | "text" | "comment" | "processing-instruction")
}
