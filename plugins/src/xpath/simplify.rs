//! Rewrites an expression while it is built, so that it has the same value for less work.

use super::expression::{
    Arithmetic, Comparison, Expression, LocationPath, NodeTest, PathStart, PathStep, Predicate,
    XPathAxis,
};
use super::function::Function;

pub(super) fn or(left: Expression, right: Expression) -> Expression {
    if let Expression::Or(mut parts) = left {
        parts.push(right);
        return Expression::Or(parts);
    }
    Expression::Or(vec![left, right])
}

pub(super) fn and(left: Expression, right: Expression) -> Expression {
    if let Expression::And(mut parts) = left {
        parts.push(right);
        return Expression::And(parts);
    }
    Expression::And(vec![left, right])
}

pub(super) fn arithmetic(operator: Arithmetic, left: Expression, right: Expression) -> Expression {
    // This turns `[2-1]` into a position known at compile time.
    if let (Expression::Number(left), Expression::Number(right)) = (&left, &right) {
        return Expression::Number(operator.of(*left, *right));
    }
    Expression::Arithmetic(operator, Box::new((left, right)))
}

pub(super) fn negate(operand: Expression, odd: bool) -> Expression {
    match operand {
        Expression::Number(number) if odd => Expression::Number(-number),
        Expression::Number(number) => Expression::Number(number),
        operand if odd => Expression::Negate(Box::new(operand)),
        operand => Expression::Call(Function::Number, vec![operand]),
    }
}

pub(super) fn compare(comparison: Comparison, left: Expression, right: Expression) -> Expression {
    let (count, bound, comparison) = match (&left, &right) {
        (Expression::Call(Function::Count, _), Expression::Number(bound)) => {
            (left, *bound, comparison)
        }
        (Expression::Number(bound), Expression::Call(Function::Count, _)) => {
            let bound = *bound;
            (right, bound, comparison.flipped())
        }
        _ => return Expression::Compare(comparison, Box::new((left, right))),
    };
    emptiness(comparison, count, bound)
}

/// Replaces counting by a test for existence where that is equivalent: `count(*)=0` becomes
/// `not(*)`.
fn emptiness(comparison: Comparison, count: Expression, bound: f64) -> Expression {
    let any = [0.0, 1.0, 2.0].map(|count| comparison.of_numbers(count, bound));
    let function = match (any, comparison) {
        // `count(x)=1` and `count(x)!=1` depend on more than existence.
        ([true, false, false], Comparison::Equal | Comparison::Less | Comparison::LessEqual) => {
            Function::Not
        }
        (
            [false, true, true],
            Comparison::NotEqual | Comparison::Greater | Comparison::GreaterEqual,
        ) => Function::Boolean,
        _ => {
            let sides = Box::new((count, Expression::Number(bound)));
            return Expression::Compare(comparison, sides);
        }
    };
    match count {
        Expression::Call(_, nodes) => Expression::Call(function, nodes),
        other => other,
    }
}

pub(super) fn filter(
    primary: Expression,
    predicates: Vec<Predicate>,
    steps: Vec<PathStep>,
) -> Expression {
    match primary {
        // `(//a)/b` is `//a/b`.
        Expression::Path(inner) if predicates.is_empty() => {
            let all = inner.steps.into_iter().chain(steps).collect();
            path(inner.start, all)
        }
        primary => path(PathStart::Filter(Box::new(primary), predicates), steps),
    }
}

pub(super) fn path(start: PathStart, steps: Vec<PathStep>) -> Expression {
    let mut kept: Vec<PathStep> = Vec::with_capacity(steps.len());
    for mut step in steps {
        if is_plain(&step, XPathAxis::SelfNode) {
            continue;
        }
        if kept.last().is_some_and(|last| is_plain(last, XPathAxis::DescendantOrSelf)) {
            fuse(&mut kept, &mut step);
        }
        kept.push(step);
    }
    Expression::Path(LocationPath { start, steps: kept })
}

/// Whether `step` is `axis::node()` without predicates.
fn is_plain(step: &PathStep, axis: XPathAxis) -> bool {
    step.axis == axis && step.test == NodeTest::Any && step.predicates.is_empty()
}

/// Joins the step that `//` stands for, the last of `kept`, with the step after it.
///
/// Positions are counted within each parent, so `//td[1]` must keep both steps. But the first of
/// them then needs to visit only nodes with children.
fn fuse(kept: &mut Vec<PathStep>, step: &mut PathStep) {
    let joined = match step.axis {
        XPathAxis::Child | XPathAxis::Descendant => Some(XPathAxis::Descendant),
        XPathAxis::SelfNode | XPathAxis::DescendantOrSelf => Some(XPathAxis::DescendantOrSelf),
        _ => None,
    };
    if let Some(axis) = joined.filter(|_| !step.is_positional()) {
        kept.pop();
        step.axis = axis;
        return;
    }
    let test = match step.axis {
        XPathAxis::Child | XPathAxis::Descendant => NodeTest::HasChildren,
        XPathAxis::Attribute => NodeTest::AnyName,
        _ => return,
    };
    if let Some(last) = kept.last_mut() {
        last.test = test;
    }
}

pub(super) fn predicate(condition: Expression) -> Predicate {
    match condition {
        Expression::Number(number) => at(number),
        Expression::Compare(Comparison::Equal, sides)
            if matches!(
                *sides,
                (Expression::Call(Function::Position, _), Expression::Number(_))
            ) =>
        {
            match sides.1 {
                Expression::Number(number) => at(number),
                _ => Predicate::At(0),
            }
        }
        expression => {
            let numeric = expression.kind() == super::expression::ValueKind::Number;
            let sized = asks_for(&expression, Function::Last);
            Predicate::Test {
                positional: numeric || sized || asks_for(&expression, Function::Position),
                expression,
                numeric,
                sized,
            }
        }
    }
}

fn at(number: f64) -> Predicate {
    if number >= 1.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX) {
        Predicate::At(number as usize)
    } else {
        Predicate::At(0)
    }
}

/// Whether the value depends on `position()` or `last()` of the expression's own context.
fn asks_for(expression: &Expression, wanted: Function) -> bool {
    match expression {
        Expression::Or(parts) | Expression::And(parts) | Expression::Union(parts) => {
            parts.iter().any(|part| asks_for(part, wanted))
        }
        Expression::Compare(_, sides) | Expression::Arithmetic(_, sides) => {
            asks_for(&sides.0, wanted) || asks_for(&sides.1, wanted)
        }
        Expression::Negate(operand) => asks_for(operand, wanted),
        Expression::Literal(_) | Expression::Number(_) | Expression::Boolean(_) => false,
        Expression::Call(function, arguments) => {
            *function == wanted || arguments.iter().any(|argument| asks_for(argument, wanted))
        }
        // Predicates in its steps have their own positions.
        Expression::Path(path) => match &path.start {
            PathStart::Filter(primary, _) => asks_for(primary, wanted),
            PathStart::Context | PathStart::Root => false,
        },
    }
}
