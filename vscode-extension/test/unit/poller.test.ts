import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { NexusError } from "../../src/nexus";
import { makePoller } from "../../src/usage/poller";

/** A question whose answers the test gives. */
function question() {
  const calls: { answer(value: string): Promise<void>; fail(error: Error): Promise<void>; signal: AbortSignal }[] = [];
  const settled = async (act: () => void) => {
    act();
    await vi.advanceTimersByTimeAsync(0);
  };
  const ask = (signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      calls.push({
        signal,
        answer: (value) => settled(() => resolve(value)),
        fail: (error) => settled(() => reject(error)),
      });
    });
  const told = vi.fn();
  const one = makePoller(ask, told);
  return { one, calls, told, call: (index: number) => calls[index] ?? expect.fail(`there is no call ${index}`) };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("what is asked", () => {
  it("is asked once somebody looks, and not again before something changes", async () => {
    const { one, calls, call, told } = question();
    one.poke();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(calls.length).toBe(0);
    one.setVisible(true);
    await vi.advanceTimersByTimeAsync(0);
    await call(0).answer("a");
    expect([one.value, told.mock.calls.length]).toEqual(["a", 1]);
    one.setVisible(false);
    one.setVisible(true);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(calls.length).toBe(1);
  });

  it("many changes at once are one request; one that comes while it runs is asked for after it", async () => {
    const { one, calls, call } = question();
    one.setVisible(true);
    for (let time = 0; time < 10; time++) one.poke();
    await vi.advanceTimersByTimeAsync(5);
    expect(calls.length).toBe(1);
    one.poke();
    await vi.advanceTimersByTimeAsync(100);
    expect(calls.length).toBe(1);
    await call(0).answer("a");
    expect(one.value).toBe("a");
    await vi.advanceTimersByTimeAsync(5);
    await call(1).answer("b");
    expect(one.value).toBe("b");
    expect(call(0).signal.aborted).toBe(false);
  });

  it("a failure is asked about again after a wait, also if somebody looks again because of it", async () => {
    const { one, calls, call, told } = question();
    told.mockImplementation(() => one.setVisible(true));
    one.setVisible(true);
    await vi.advanceTimersByTimeAsync(5);
    await call(0).fail(new Error("busy"));
    await vi.advanceTimersByTimeAsync(900);
    expect(calls.length).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(calls.length).toBe(2);
  });

  it("something else is asked about: what runs is cancelled, what is known is stale until the answer", async () => {
    const { one, call } = question();
    one.setVisible(true);
    await vi.advanceTimersByTimeAsync(5);
    await call(0).answer("a");
    one.poke();
    await vi.advanceTimersByTimeAsync(5);
    one.renew();
    expect([one.value, one.stale, call(1).signal.aborted]).toEqual(["a", true, true]);
    await vi.advanceTimersByTimeAsync(5);
    await call(1).answer("late");
    expect(one.stale).toBe(true);
    await call(2).answer("b");
    expect([one.value, one.stale]).toEqual(["b", false]);
  });

  it("a failure keeps the last answer and is tried again, later each time", async () => {
    const { one, calls, call } = question();
    one.setVisible(true);
    await vi.advanceTimersByTimeAsync(5);
    await call(0).answer("a");
    one.poke();
    await vi.advanceTimersByTimeAsync(5);
    await call(1).fail(new NexusError("The ledger is busy.", "ledger-busy"));
    expect([one.value, one.trouble]).toEqual(["a", "The ledger is busy."]);
    await vi.advanceTimersByTimeAsync(999);
    expect(calls.length).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    await call(2).fail(new NexusError("The ledger is busy.", "ledger-busy"));
    await vi.advanceTimersByTimeAsync(1_999);
    expect(calls.length).toBe(3);
    one.poke(); // what changes is asked for at once
    await vi.advanceTimersByTimeAsync(5);
    await call(3).answer("b");
    expect([one.value, one.trouble]).toEqual(["b", undefined]);
  });

  it("a failure that would be the same again is not tried again, and takes a stale answer away", async () => {
    const { one, calls, call } = question();
    one.setVisible(true);
    await vi.advanceTimersByTimeAsync(5);
    await call(0).answer("a");
    one.renew();
    await vi.advanceTimersByTimeAsync(5);
    await call(1).fail(new NexusError("There is no such method.", "method-not-found"));
    await vi.advanceTimersByTimeAsync(100_000);
    expect([one.value, one.trouble, calls.length]).toEqual([undefined, "There is no such method.", 2]);
  });

  it("is not asked any more when nobody looks or all is over", async () => {
    const { one, calls, call } = question();
    one.setVisible(true);
    one.setVisible(false);
    await vi.advanceTimersByTimeAsync(100);
    expect(calls.length).toBe(0);
    one.setVisible(true);
    await vi.advanceTimersByTimeAsync(5);
    one.dispose();
    await call(0).answer("a");
    one.poke();
    await vi.advanceTimersByTimeAsync(100);
    expect([one.value, calls.length]).toEqual([undefined, 1]);
  });
});
