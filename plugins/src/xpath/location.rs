//! Parses the steps of a path: axes, node tests and predicates.

use crate::html::LocalName;

use super::XPathError;
use super::expression::{NodeTest, PathStep, Predicate, XPathAxis};
use super::lexer::{FoldedName, XPathToken};
use super::parser::XPathParser;
use super::simplify;

impl XPathParser {
    pub(super) fn step_follows(&self) -> bool {
        matches!(
            self.peek(),
            XPathToken::Dot
                | XPathToken::DotDot
                | XPathToken::At
                | XPathToken::Star
                | XPathToken::Name(_)
                | XPathToken::PrefixStar(_)
        )
    }

    /// Parses the steps of a path that does not begin with a slash.
    pub(super) fn steps(&mut self, steps: &mut Vec<PathStep>) -> Result<(), XPathError> {
        let step = self.step()?;
        steps.push(step);
        self.more_steps(steps)
    }

    /// Parses all steps that follow, each with a slash before it.
    pub(super) fn more_steps(&mut self, steps: &mut Vec<PathStep>) -> Result<(), XPathError> {
        loop {
            if self.skip_if(&XPathToken::SlashSlash) {
                steps.push(PathStep::plain(XPathAxis::DescendantOrSelf, NodeTest::Any));
            } else if !self.skip_if(&XPathToken::Slash) {
                return Ok(());
            }
            let step = self.step()?;
            steps.push(step);
        }
    }

    fn step(&mut self) -> Result<PathStep, XPathError> {
        if self.skip_if(&XPathToken::Dot) {
            return Ok(PathStep::plain(XPathAxis::SelfNode, NodeTest::Any));
        }
        if self.skip_if(&XPathToken::DotDot) {
            return Ok(PathStep::plain(XPathAxis::Parent, NodeTest::Any));
        }
        let axis = self.axis()?;
        let test = self.node_test()?;
        let predicates = self.predicates()?;
        Ok(PathStep { axis, test, predicates })
    }

    fn axis(&mut self) -> Result<XPathAxis, XPathError> {
        if self.skip_if(&XPathToken::At) {
            return Ok(XPathAxis::Attribute);
        }
        let XPathToken::Name(name) = self.peek() else {
            return Ok(XPathAxis::Child);
        };
        if *self.peek_after() != XPathToken::Colons {
            return Ok(XPathAxis::Child);
        }
        let found = XPathAxis::ALL.iter().find(|(known, _)| *known == name.folded);
        let Some((_, axis)) = found else {
            let known = XPathAxis::ALL.iter().map(|(known, _)| *known);
            return Err(self.unknown("axis", &name.folded, known));
        };
        self.skip();
        self.skip();
        Ok(*axis)
    }

    fn node_test(&mut self) -> Result<NodeTest, XPathError> {
        let test = match self.peek().clone() {
            XPathToken::Star => NodeTest::AnyName,
            XPathToken::PrefixStar(FoldedName { folded, given }) => {
                NodeTest::Prefix(folded.into(), given.map(Into::into))
            }
            XPathToken::Name(name) if *self.peek_after() == XPathToken::OpenParen => {
                return self.node_type(&name.folded);
            }
            XPathToken::Name(FoldedName { folded, given }) => {
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
            "processing-instruction" => NodeTest::ProcessingInstruction,
            _ => {
                let why = format!("`{name}()` is not a node test, so it cannot follow `/` or `::`");
                return Err(self.wrong(why));
            }
        };
        self.skip();
        self.skip();
        if test == NodeTest::ProcessingInstruction && matches!(self.peek(), XPathToken::Literal(_))
        {
            self.skip();
        }
        self.expect(&XPathToken::CloseParen, "to close `(`")?;
        Ok(test)
    }

    /// Parses all predicates that follow. `height` is then the maximum of its old value and theirs.
    pub(super) fn predicates(&mut self) -> Result<Vec<Predicate>, XPathError> {
        let mut height = self.height;
        let mut predicates = Vec::new();
        while self.skip_if(&XPathToken::OpenBracket) {
            let condition = self.expression()?;
            height = height.max(self.height);
            self.expect(&XPathToken::CloseBracket, "to close `[`")?;
            predicates.push(simplify::predicate(condition));
        }
        self.height = height;
        Ok(predicates)
    }
}

pub(super) fn is_node_type(name: &str) -> bool {
    matches!(name, "node" | "text" | "comment" | "processing-instruction")
}
