"""Thirty-two different chats at once: each gets the answer to its own question."""

import pytest
from calls import Answer, all_at_once, chat

CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "Japan": "Tokyo", "China": "Beijing",
    "Russia": "Moscow", "England": "London", "Greece": "Athens", "Egypt": "Cairo", "Portugal": "Lisbon", "Poland": "Warsaw",
    "Austria": "Vienna", "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki", "Denmark": "Copenhagen",
    "Ireland": "Dublin", "Hungary": "Budapest", "Canada": "Ottawa", "Cuba": "Havana", "Peru": "Lima", "Chile": "Santiago",
    "Argentina": "Buenos Aires", "Kenya": "Nairobi", "India": "New Delhi", "Thailand": "Bangkok", "Vietnam": "Hanoi",
    "Iran": "Tehran", "Iraq": "Baghdad", "Belgium": "Brussels", "South Korea": "Seoul",
}  # fmt: skip
assert len(CAPITALS) == 32

# Kernels sum in another order when the batch has another shape; with quantised weights and KV the log probability of a token
# moves by about this much. Two tokens closer than this may swap places; a mixed-up state moves them by whole units.
FLOAT_NOISE = 0.5


def request_for(country: str):
    return chat(f"Name the capital city of {country}.", temperature=0, max_tokens=24, top_logprobs=5)


def check_same_but_for_rounding(country: str, alone: Answer, together: Answer) -> None:
    for place, (one, other) in enumerate(zip(alone.logprobs, together.logprobs, strict=False)):
        if one.token == other.token:
            assert one.logprob == pytest.approx(other.logprob, abs=FLOAT_NOISE), f"{country}, token {place}"
            continue
        for view in (one, other):  # both runs saw the same two tokens as a near tie
            likely = {candidate.token: candidate.logprob for candidate in view.top}
            assert one.token in likely and other.token in likely, f"{country}, token {place}: other candidates altogether"
            assert abs(likely[one.token] - likely[other.token]) < FLOAT_NOISE, f"{country}, token {place}: no tie"
        return  # from here on they are different texts
    assert alone.text == together.text, country


def test_each_chat_gets_its_own_answer(replica):
    stub = replica.stub()
    alone = {country: Answer.of(stub.Generate(request_for(country))) for country in CAPITALS}
    answers = all_at_once([lambda c=country: Answer.of(stub.Generate(request_for(c))) for country in CAPITALS])
    together = dict(zip(CAPITALS, answers, strict=True))

    for country in CAPITALS:
        check_same_but_for_rounding(country, alone[country], together[country])
    right = [country for country, capital in CAPITALS.items() if capital.encode() in together[country].text]
    assert len(right) >= 16, f"only {right}: a model of this size knows most of them"
    for country, capital in CAPITALS.items():
        for other, answer in together.items():
            if other != country and other in right:
                assert f"of {country} is".encode() not in answer.text, f"{other} got the answer for {country}"


def test_chats_that_join_and_leave_at_different_steps_do_not_disturb_each_other(replica):
    stub = replica.stub()
    lengths = dict(zip(CAPITALS, [1 + 3 * (place % 8) for place in range(32)], strict=True))

    def ask(country: str) -> Answer:
        request = request_for(country)
        request.max_tokens = lengths[country]
        return Answer.of(stub.Generate(request))

    alone = {country: ask(country) for country in CAPITALS}
    together = dict(zip(CAPITALS, all_at_once([lambda c=country: ask(c) for country in CAPITALS]), strict=True))
    for country in CAPITALS:
        assert together[country].last.completion_tokens <= lengths[country]
        check_same_but_for_rounding(country, alone[country], together[country])
