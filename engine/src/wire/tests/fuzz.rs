//! The frame decoder with random bytes.

use super::*;
use crate::wire::tests::frame::{DecodedFrame, Decoder, Frame, FrameKind, HEAD};

const MAX: usize = 5000;

fn feed(decoder: &mut Decoder, bytes: &[u8]) {
    decoder.room(bytes.len()).copy_from_slice(bytes);
}

fn some_frame(dice: &mut Dice) -> Frame {
    let number = dice.roll();
    match dice.below(6) {
        0 => Frame::new(FrameKind::Ping, 0, Vec::new()),
        1 => Frame::sizes(FrameKind::AnswerTooLarge, number, dice.roll(), dice.roll()),
        2 => Frame::new(FrameKind::Hello, 0, vec![3; dice.below(4097) as usize]),
        3 => Frame::new(FrameKind::Answer, number, vec![1; dice.below(MAX as u64 + 50) as usize]),
        _ => Frame::new(FrameKind::Request, number, vec![2; dice.below(80) as usize]),
    }
}

#[test]
fn the_bytes_on_the_wire_are_fixed() {
    let frame = Frame::new(FrameKind::Request, 0x0102, b"body".to_vec());
    assert_eq!(frame.head(), [2, 2, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
    let kinds = [FrameKind::Hello, FrameKind::Refused, FrameKind::Request, FrameKind::Answer];
    assert_eq!(kinds.map(|kind| kind as u8), [0, 1, 2, 3]);
    let kinds =
        [FrameKind::RequestTooLarge, FrameKind::AnswerTooLarge, FrameKind::Ping, FrameKind::Pong];
    assert_eq!(kinds.map(|kind| kind as u8), [4, 5, 6, 7]);
    let bytes = postcard::to_stdvec(&Hello { role: PeerRole::Operator, ..hello(300) }).unwrap();
    assert_eq!(bytes, [3, 2, 1, 2, 1, 4, 0xac, 2, 5, b'1', b'=', b'a', b':', b'1']);
}

#[test]
fn frames_that_arrive_in_pieces_are_decoded() {
    for seed in 0..1500 {
        let mut dice = Dice(seed);
        let frames: Vec<Frame> = (0..dice.below(12)).map(|_| some_frame(&mut dice)).collect();
        let stream: Vec<u8> =
            frames.iter().flat_map(|f| [f.head().as_slice(), &f.body].concat()).collect();
        let mut decoder = Decoder::new(MAX);
        let mut found = Vec::new();
        let mut rest = stream.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((1 + dice.below(700) as usize).min(rest.len()));
            feed(&mut decoder, piece);
            rest = after;
            // Not always emptied at once: a connection at its limit does not read on either.
            while dice.below(5) > 0
                && let Some(next) = decoder.next().unwrap()
            {
                found.push(next);
            }
        }
        while let Some(next) = decoder.next().unwrap() {
            found.push(next);
        }
        let expect: Vec<DecodedFrame> = frames
            .into_iter()
            .map(|frame| match frame.body.len() {
                size if size > MAX => {
                    DecodedFrame::TooLarge { kind: frame.kind, number: frame.number, size }
                }
                _ => DecodedFrame::Frame(frame),
            })
            .collect();
        assert_eq!(found, expect, "seed {seed}");
    }
}

#[test]
fn random_bytes_give_an_error_or_frames_within_the_limits() {
    let mut errors = 0;
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let mut decoder = Decoder::new(MAX);
        let mut stream: Vec<u8> = (0..dice.below(3000)).map(|_| dice.roll() as u8).collect();
        // Half of the cases begin with a valid frame.
        if dice.below(2) == 0 && stream.len() > HEAD {
            let frame = some_frame(&mut dice);
            stream.splice(..0, [frame.head().as_slice(), &frame.body].concat());
            let at = dice.below(stream.len() as u64) as usize;
            stream[at] ^= 1 << dice.below(8);
        }
        for piece in stream.chunks(1 + dice.below(400) as usize) {
            feed(&mut decoder, piece);
            let more = loop {
                match decoder.next() {
                    Ok(Some(DecodedFrame::Frame(frame))) => assert!(frame.body.len() <= MAX),
                    Ok(Some(DecodedFrame::TooLarge { size, .. })) => assert!(size > MAX),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            if !more {
                errors += 1;
                break;
            }
        }
    }
    assert!(errors > 2000, "only {errors} of 4000 were noticed");
}
