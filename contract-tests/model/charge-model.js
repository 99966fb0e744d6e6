/* eslint-disable max-lines-per-function, complexity */
// A model of how the server decides whether a payment may still be settled (docs/explanation/design.md, "Who waits for a payment"). Plain Node:
//   node contract-tests/model/charge-model.js              all checks: a table, and the shortest trace of every counterexample
//   node contract-tests/model/charge-model.js quick        those that take seconds
//   node contract-tests/model/charge-model.js fixed any    one protocol, one check (see PROTOCOLS and CHECKS); MAX=<states> bounds it
// It fails if a check does not end as expected: the protocol must hold, and must not hold without any one of its rules.
//
// Breadth-first search over all interleavings. One payer, one operation, one body: all payments here are "the same call". P1.. are
// payments, A and B servers, R1.. requests (one request = one connection). Time is in ticks: one tick = one renewal period (2 s); a
// caller that is not renewed for C ticks has lapsed. A transaction on the ledger is one step (payer lock and row locks under READ
// COMMITTED give that); everything between two of them interleaves freely: arrivals (late and out of order), hang-ups, 503s, crashes,
// pauses, the facilitator, the chain.

import process from 'node:process';
import console from 'node:console';

const C = 2; // ticks without renewal after which a caller counts as gone
const AGE = C + 1; // ages are capped here
const NONE = 0,
  CLAIMED = 1,
  SETTLING = 2,
  RELEASED = 3,
  DELIVERED = 4; // row states (`owed` behaves like SETTLING here)
const WORK = 1,
  COMMITTED = 2,
  ASKED = 3,
  PAID = 4; // the step that the worker of a row has reached; 0: no worker
const WAITING = 1,
  LEFT = 2,
  STRANGER = 3; // the state of a request at the client's end, or that it is a stranger's; 0: not used yet
const OPEN = 1,
  FIN = 2,
  CLOSED = 3; // its state at the server's end; 0: not arrived yet. FIN: hung up, not noticed yet

// The rules of the corrected protocol. Each can be taken away to see what it is for.
const ALL = {
  watch: true, // a copy at another server watches the row (else: 503 "worked on elsewhere")
  gate: true, // claimed → settling only while the newest caller is there (else: while the local socket is open)
  sole: true, // only a row with exactly one caller ever, who is there, is a sale of its own (else: whoever renews last decides)
  void: true, // a row that is settled makes the claimed rows of the same call its aliases, unless they are sole
  wait: true, // do not settle beside an equal row whose caller was not seen since this payment came
  newest: true, // only an answer written to the newest caller counts as written; a new copy un-writes
  join: true, // only the newest caller of an alias becomes a caller of the payment that the alias redeems; others get 503
  order: true, // …and, of a row with several callers, only if it was written before this payment came
  note: true, // no copy gets a 503 that the ledger does not know of
  early: true, // only callers who came before the move to settling can end it by being written to: later ones may be strangers
  identifier: true, // a payment waits for another one that has the same identifier (else: it is a sale of its own)
  once: true, // …and is not settled once that one was or may have been paid
  crashKnown: false, // the callers of a crashed server are known to be gone at once (today's owner lock)
};
const off = (...names) => ({ ...ALL, ...Object.fromEntries(names.map(name => [name, false])) });
export const PROTOCOLS = {
  today: {
    ...off('watch', 'gate', 'sole', 'void', 'wait', 'newest', 'order', 'join', 'early'),
    crashKnown: true,
  },
  proposed: off('sole', 'void', 'wait', 'newest', 'order', 'join', 'early'),
  fixed: ALL,
  'fixed-sole': off('sole'),
  'fixed-void': off('void'),
  'fixed-wait': off('wait'),
  'fixed-identifier': off('identifier'),
  'fixed-once': off('once'),
  'fixed-neither': off('identifier', 'once'),
  'fixed-order': off('order'),
  'fixed-newest': off('newest'),
  'fixed-join': off('join'),
  'fixed-note': off('note'),
  'fixed-gate': off('gate'),
  'fixed-early': off('early'),
};

// What may happen. payments, requests: the largest number of each. swallow: a proxy may hide that the client hung up.
// sign: when the client signs a new payment:
// 'known' (its last request ended by 503, 402, a cut, or a hang-up that the server is told of) or 'any' (always).
// older: a client may go back to an older one of its payments. identified: all its payments carry one payment-identifier. pickUp: it may
// fetch the answer by its key. unwritten: the ledger may fail when it should record a settled payment as delivered.
const BASE = {
  payments: 2,
  requests: 3,
  crashes: 0,
  pauses: 0,
  swallow: false,
  sign: 'known',
  two: false,
  faults: true,
  send503: true,
  late: true,
};
export const CHECKS = {
  plain: { ...BASE },
  crash: { ...BASE, crashes: 1 },
  pause: { ...BASE, pauses: 1 },
  lost: { ...BASE, crashes: 1, lost: true }, // also: from everywhere the client can still get its answer
  // A proxy keeps a request open after its client gave up. The request had arrived before that, and the server knows that the
  // client's last request has ended.
  proxy: { ...BASE, swallow: 'open' },
  'proxy-crash': { ...BASE, swallow: 'open', crashes: 1, faults: false },
  'proxy-pause': { ...BASE, swallow: 'open', pauses: 1, faults: false },
  'proxy-lost': { ...BASE, swallow: 'open', crashes: 1, faults: false, lost: true },
  proxy4: { ...BASE, swallow: 'open', requests: 4, payments: 3, faults: false },
  'proxy4-crash': { ...BASE, swallow: 'open', crashes: 1, requests: 4, payments: 3, faults: false }, // minutes
  proxy5: { ...BASE, swallow: 'open', requests: 5, payments: 3, faults: false }, // larger than memory: bound it with MAX
  two: { ...BASE, two: true, requests: 2, faults: false, send503: false }, // two calls on purpose, both stay connected
  three: { ...BASE, two: true, payments: 3, requests: 3, faults: false, send503: false },
  // Once the money has moved, anyone may take the transaction from the chain and send it with the same body.
  stranger: { ...BASE, stranger: true },
  'stranger-crash': { ...BASE, stranger: true, crashes: 1, faults: false },
  'stranger-proxy': { ...BASE, stranger: true, swallow: 'open', requests: 4, faults: false },
  'stranger-lost': { ...BASE, stranger: true, requests: 4, faults: false, lost: true },
  // The same, but hang-ups are noticed immediately or never, so that only the other counterexamples are left.
  calm: { ...BASE, swallow: 'open', faults: false, late: false },
  'calm-crash': { ...BASE, crashes: 1, late: false },
  // A client that goes back to older payments once the server knows that its last request has ended.
  older: { ...BASE, older: 'known' },
  older3: { ...BASE, older: 'known', payments: 3, requests: 4, faults: false },
  'older-crash': { ...BASE, older: 'known', crashes: 1, faults: false },
  'older-pause': { ...BASE, older: 'known', pauses: 1, faults: false },
  'older-proxy': { ...BASE, older: 'known', swallow: 'open', faults: false },
  'older-proxy4': { ...BASE, older: 'known', swallow: 'open', payments: 3, requests: 4, faults: false },
  'older-lost': { ...BASE, older: 'known', crashes: 1, faults: false, lost: true },
  // One payment-identifier with every signature: whatever proxies hide, whenever the client signs, whichever payment it sends.
  identified: { ...BASE, identified: true, sign: 'any', older: 'any', swallow: true },
  'identified-crash': {
    ...BASE,
    identified: true,
    sign: 'any',
    older: 'any',
    swallow: true,
    crashes: 1,
    faults: false,
  },
  'identified-pause': {
    ...BASE,
    identified: true,
    sign: 'any',
    older: 'any',
    swallow: true,
    pauses: 1,
    faults: false,
  },
  identified3: {
    ...BASE,
    identified: true,
    sign: 'any',
    older: 'any',
    swallow: true,
    payments: 3,
    faults: false,
  },
  'identified-lost': {
    ...BASE,
    identified: true,
    sign: 'any',
    older: 'any',
    crashes: 1,
    faults: false,
    lost: true,
  },
  // The ledger fails between the settlement and `delivered`, so the answer is sent but not recorded.
  unwritten: { ...BASE, unwritten: true },
  'unwritten-crash': { ...BASE, unwritten: true, crashes: 1, faults: false },
  'unwritten-proxy': { ...BASE, unwritten: true, swallow: 'open', faults: false },
  'unwritten-lost': { ...BASE, unwritten: true, crashes: 1, faults: false, lost: true },
  'unwritten-identified': {
    ...BASE,
    unwritten: true,
    identified: true,
    sign: 'any',
    older: 'any',
    swallow: true,
    faults: false,
  },
  // The client fetches the answer by its key as soon as there is one.
  pickup: { ...BASE, pickUp: true, crashes: 1, faults: false, lost: true },
  'pickup-identified': {
    ...BASE,
    pickUp: true,
    identified: true,
    sign: 'any',
    older: 'any',
    crashes: 1,
    faults: false,
    lost: true,
  },
  all: { ...BASE, older: 'known', pickUp: true, unwritten: true, crashes: 1, faults: false, lost: true },
  // The client goes back to older payments even while its last request seems to be alive.
  'older-any': { ...BASE, swallow: 'open', older: 'any', faults: false },
  // Expected to fail with any protocol.
  any: { ...BASE, swallow: 'open', sign: 'any' }, // P2 signed while P1's only connection seems alive: looks like `two`
  late: { ...BASE, swallow: true, faults: false }, // a proxy delivers a given-up request after its successor
  'two-pause': { ...BASE, two: true, requests: 2, pauses: 1, faults: false, send503: false }, // a server sleeps through its renewals
};

const SERVERS = 2;
const ROW = 13; // n: callers so far; wt: caller it was written to; fly: bit 0 asked, bit 1 dead; older: payments there were when it was written
const st = 0,
  al = 1,
  ow = 2,
  ph = 3,
  asks = 4,
  n = 5,
  seen = 6,
  gone = 7,
  wt = 8,
  age = 9,
  moved = 10,
  fly = 11,
  older = 12;
const REQ = 6; // payment, server, client's end, server's end, row it waits for, its number among the callers of that row
const rp = 0,
  rs = 1,
  rc = 2,
  rk = 3,
  rr = 4,
  rw = 5;
const min = Math.min;

function machine(rule, check) {
  const { payments: NP, requests: NR } = check;
  const R0 = NP * ROW,
    S0 = R0 + NR * REQ,
    M0 = S0 + SERVERS,
    SIZE = M0 + 8;
  const [SIGNED, USED, MAYSIGN, ANSWERED, CRASHES, PAUSES, BAD, LAST] = [0, 1, 2, 3, 4, 5, 6, 7].map(
    i => M0 + i,
  );
  const name = r => `P${r + 1}`,
    req = i => `R${i + 1}`,
    srv = s => 'AB'[s];

  function initial() {
    const s = new Uint8Array(SIZE);
    for (let i = 0; i < SERVERS; i++) s[S0 + i] = 1;
    s[CRASHES] = check.crashes;
    s[PAUSES] = check.pauses;
    return s;
  }

  /** Every step that is possible in a state: emits [what happens, the state after it]. */
  function steps(s, emit) {
    const to = (text, change, from = s) => {
      const t = from.slice();
      change(t);
      tidy(t);
      emit(text, t);
    };
    client(s, to);
    for (let i = 0; i < s[USED]; i++) request(s, R0 + i * REQ, i, to);
    for (let r = 0; r < NP; r++) if (s[r * ROW + st] !== NONE) row(s, r, to);
    for (let v = 0; v < SERVERS; v++) server(s, v, to);
    tick(s, to);
  }

  // ---- clients -------------------------------------------------------------------------------------------------------------
  function send(t, p, v) {
    const q = R0 + t[USED]++ * REQ;
    t[q + rp] = p;
    t[q + rs] = v;
    t[q + rc] = WAITING;
    t[q + rk] = 0;
    t[q + rr] = p;
    t[q + rw] = 0;
    t[SIGNED] = Math.max(t[SIGNED], p + 1);
    t[MAYSIGN] = 0;
    t[LAST] = p;
  }
  function client(s, to) {
    if (check.pickUp && !s[ANSWERED])
      for (let p = 0; p < s[SIGNED]; p++) {
        const x = s[p * ROW + al] ? s[p * ROW + al] - 1 : p;
        if (s[x * ROW + st] === DELIVERED)
          to(`client fetches the answer of P${p + 1} by its key`, t => {
            t[ANSWERED] = 1;
            if (!t[x * ROW + moved]) t[BAD] = 2;
          });
      }
    if (s[USED] >= NR) return;
    if (check.stranger)
      for (let r = 0; r < NP; r++)
        if (s[r * ROW + moved] && ![...Array(s[USED]).keys()].some(i => s[R0 + i * REQ + rc] === STRANGER))
          for (const v of [0, 1])
            to(`a stranger sends P${r + 1} as ${req(s[USED])} to ${srv(v)}`, t => {
              const q = R0 + t[USED] * REQ,
                may = t[MAYSIGN],
                last = t[LAST];
              send(t, r, v);
              t[MAYSIGN] = may;
              t[LAST] = last;
              t[q + rc] = STRANGER;
            });
    const servers = s[USED] === 0 ? [0] : [0, 1]; // the first server is A, by symmetry
    if (check.two) {
      // every request comes from another client, with a payment of its own
      for (const v of servers)
        to(`client ${s[USED] + 1} sends ${req(s[USED])} with ${name(s[USED])} to ${srv(v)}`, t =>
          send(t, t[USED], v),
        );
      return;
    }
    if (s[ANSWERED]) return;
    for (let i = 0; i < s[USED]; i++) if (s[R0 + i * REQ + rc] === WAITING) return;
    for (const v of servers) {
      for (let p = 0; p < s[SIGNED]; p++) {
        const back = check.older === 'any' || (check.older === 'known' && s[MAYSIGN]);
        if (p === (check.older ? s[LAST] : s[SIGNED] - 1) || back)
          to(`client resends P${p + 1} as ${req(s[USED])} to ${srv(v)}`, t => send(t, p, v));
      }
      if (s[SIGNED] === 0 || (s[SIGNED] < NP && (s[MAYSIGN] || check.sign === 'any')))
        to(`client signs P${s[SIGNED] + 1}, sends it as ${req(s[USED])} to ${srv(v)}`, t =>
          send(t, t[SIGNED], v),
        );
    }
  }

  // ---- one request ---------------------------------------------------------------------------------------------------------
  /**
   * Whether the client gave up a connection that its server considers alive, or will consider alive once the request
   * arrives.
   */
  function zombie(s) {
    for (let i = 0; i < s[USED]; i++)
      if (s[R0 + i * REQ + rc] === LEFT && [0, OPEN].includes(s[R0 + i * REQ + rk])) return true;
    return false;
  }
  /** The client's end is closed, and its server knows it. */
  function ended(t, q) {
    if (t[q + rc] === WAITING) {
      t[q + rc] = LEFT;
      t[MAYSIGN] = 1;
    }
    t[q + rk] = CLOSED;
  }
  /** A caller gets a 503, or its hang-up is noticed. The ledger records it before anything else happens. */
  function departs(t, q) {
    const o = t[q + rr] * ROW;
    if (rule.sole) {
      if (t[q + rw] === t[o + n]) {
        t[o + seen] = C;
        t[o + gone] = 1;
      }
    } // caller_until = 0 where callers = mine
    else if (t[o + wt] === 0) t[o + seen] = C;
  }
  function departed(s, q) {
    const t = s.slice();
    departs(t, q);
    return t;
  }
  function request(s, q, i, to) {
    const [p, v, c, k, r] = [s[q + rp], s[q + rs], s[q + rc], s[q + rk], s[q + rr]];
    const up = s[S0 + v] === 1,
      o = r * ROW;
    if (c === WAITING && !check.two && k !== CLOSED) {
      // A request whose client hangs up before it was read is never read, unless a proxy hides the hang-up.
      to(`client hangs up ${req(i)}`, t => {
        t[q + rc] = LEFT;
        t[MAYSIGN] = k === OPEN || !zombie(t) ? 1 : 0;
        if (k === OPEN && !check.late) departs(t, q);
        t[q + rk] = k === OPEN && check.late ? FIN : CLOSED;
      });
      if (check.swallow === true || (check.swallow && k === OPEN))
        to(`client gives up ${req(i)}, a proxy keeps it open`, t => {
          t[q + rc] = LEFT;
          t[MAYSIGN] = 0;
        });
    }
    if (!up) return;
    if (k === 0) arrive(s, q, i, p, v, to);
    if (k === FIN)
      to(`${srv(v)} notices that ${req(i)} hung up`, t => {
        departs(t, q);
        t[q + rk] = CLOSED;
      });
    if (k !== OPEN) return;
    // If its own claim was freed, the request claims again. If it waited for another claim that was freed, it claims its own
    // payment.
    if (check.identified && s[o + st] === CLAIMED && !s[o + ph]) {
      const free = s[p * ROW + st] === NONE || (s[p * ROW + st] === CLAIMED && !s[p * ROW + ph]);
      if (r === p && present(s, o) && s[q + rw] === s[o + n])
        claims(s, q, p, v, `${req(i)} goes on at ${srv(v)}`, to);
      if (r !== p && free)
        claims(departed(s, q), q, p, v, `${req(i)} goes on at ${srv(v)} with P${p + 1}`, to);
      if (r !== p && !free)
        to(`${req(i)} goes on at ${srv(v)} with P${p + 1}`, t => {
          departs(t, q);
          joins(t, q, p);
        });
    }
    const alias = s[o + al] > 0,
      done = s[o + st] === DELIVERED;
    if (check.send503 || alias)
      to(`${srv(v)} answers 503 to ${req(i)}`, t => {
        departs(t, q);
        ended(t, q);
      });
    if (s[o + st] === RELEASED) to(`${srv(v)} answers 402 to ${req(i)}`, t => ended(t, q));
    if (done)
      to(`${srv(v)} writes the answer to ${req(i)}${c === LEFT ? ' (where nobody reads it)' : ''}`, t => {
        if (!t[o + moved]) t[BAD] = 2; // P-free
        if (c === WAITING) {
          t[ANSWERED] = 1;
          t[q + rc] = LEFT;
        }
        t[q + rk] = CLOSED;
        if (!rule.newest || t[q + rw] === t[o + n]) {
          t[o + wt] = rule.newest ? t[o + n] : 9;
          t[o + older] = 0;
          for (let x = 0; x < NP; x++)
            if (rule.newest && x !== r && t[x * ROW + st] === CLAIMED && !t[x * ROW + al])
              t[o + older] |= 1 << x;
        }
      });
  }
  function joins(t, q, r, proven = false) {
    // proven: the request presented another payment, which was never public
    const o = r * ROW;
    t[o + n] = min(9, t[o + n] + 1); // callers = callers + 1, caller_until = now + 5 s: also un-writes the answer
    t[q + rr] = r;
    t[q + rk] = OPEN;
    t[q + rw] = rule.early && !proven && t[o + st] !== CLAIMED ? 0 : t[o + n];
    t[o + seen] = 0;
    t[o + gone] = 0;
  }
  /** Another payment with the same identifier that was charged, may have been, or is about to be. */
  function other(s, p) {
    for (let x = 0; x < NP; x++) {
      const e = x * ROW;
      if (
        x !== p &&
        !s[e + al] &&
        ([SETTLING, DELIVERED].includes(s[e + st]) || (s[e + st] === CLAIMED && s[e + ph]))
      )
        return x;
    }
    return -1;
  }
  /** A request claims its own payment, or waits for the other one with its identifier. */
  function claims(s, q, p, v, text, to) {
    const x = rule.identifier ? other(s, p) : -1,
      o = p * ROW;
    if (x >= 0)
      return to(
        `${text}, which waits for P${x + 1}: it has the same identifier`,
        t => joins(t, q, x, true),
        s,
      );
    to(
      `${text}, which claims P${p + 1}`,
      t => {
        if (t[o + st] === NONE) {
          t[o + age] = 0;
          t[o + n] = 0;
        }
        const again = t[q + rk] === OPEN && t[q + rr] === p && t[q + rw] === t[o + n];
        t[o + st] = CLAIMED;
        t[o + ow] = v + 1;
        t[o + ph] = WORK;
        if (!again) joins(t, q, p);
      },
      s,
    );
  }
  function arrive(s, q, i, p, v, to) {
    if (check.identified && (s[p * ROW + st] === NONE || (s[p * ROW + st] === CLAIMED && !s[p * ROW + ph])))
      return claims(s, q, p, v, `${req(i)} (P${p + 1}) arrives at ${srv(v)}`, to);
    const r = s[p * ROW + al] ? s[p * ROW + al] - 1 : p,
      o = r * ROW;
    const busy = s[o + ph] > 0 && s[o + ow] !== v + 1;
    const text = `${req(i)} (P${p + 1}) arrives at ${srv(v)}`;
    if (s[o + st] === NONE)
      return to(`${text}, which claims P${p + 1}`, t => {
        t[o + st] = CLAIMED;
        t[o + ow] = v + 1;
        t[o + ph] = WORK;
        t[o + age] = 0;
        t[o + n] = 0;
        joins(t, q, r);
      });
    if (!rule.watch && (s[o + st] === SETTLING || (s[o + st] === CLAIMED && busy)))
      return to(`${text}: 503, worked on elsewhere`, t => {
        t[o + seen] = C;
        ended(t, q);
      });
    if (!rule.note) to(`${text}: 503 without a look at the ledger`, t => ended(t, q));
    to(
      `${text}, which watches P${r + 1}${s[o + st] === CLAIMED && !s[o + ph] ? ' and works on it' : ''}`,
      t => {
        joins(t, q, r, p !== r);
        if (t[o + st] === CLAIMED && !t[o + ph]) {
          t[o + ow] = v + 1;
          t[o + ph] = WORK;
        }
      },
    );
  }

  // ---- one row: its worker, the facilitator, the chain, the reconciler -----------------------------------------------------
  const present = (s, o) => s[o + seen] < C;
  function someOpen(s, r, v) {
    for (let i = 0; i < s[USED]; i++) {
      const q = R0 + i * REQ;
      if (
        s[q + rr] === r &&
        s[q + rk] === OPEN &&
        s[S0 + s[q + rs]] === 1 &&
        (v === undefined || s[q + rs] === v)
      )
        return s[q + rs] + 1;
    }
    return 0;
  }
  function row(s, r, to) {
    const o = r * ROW,
      v = s[o + ow] - 1;
    const up = v >= 0 && s[S0 + v] === 1;
    if (s[o + ph] === WORK && up) settle(s, r, v, to);
    if (check.identified && s[o + ph] === WORK && v >= 0 && s[S0 + v] === 2)
      to(`the lease of P${r + 1} ends`, t => {
        t[o + ow] = 0;
        t[o + ph] = 0;
      });
    if (!check.identified && s[o + ph] === WORK && v >= 0 && s[S0 + v] === 2 && rule.watch) {
      // the lease of a sleeping worker ends: a watcher takes over
      const w = someOpen(s, r);
      if (w)
        to(`${srv(w - 1)} takes over P${r + 1}`, t => {
          t[o + ow] = w;
        });
    }
    if (!check.identified && s[o + st] === CLAIMED && !s[o + al] && !s[o + ph] && rule.watch) {
      // …or of one that died
      const w = someOpen(s, r);
      if (w && present(s, o))
        to(`${srv(w - 1)} works on P${r + 1} anew`, t => {
          t[o + ow] = w;
          t[o + ph] = WORK;
        });
    }
    if (s[o + ph] === COMMITTED && up)
      to(`${srv(v)} asks the facilitator to settle P${r + 1}`, t => {
        t[o + ph] = ASKED;
        t[o + asks] = min(2, t[o + asks] + 1);
        t[o + fly] |= 1;
      });
    const asking = s[o + ph] === ASKED,
      flying = (s[o + fly] & 1) === 1,
      dead = (s[o + fly] & 2) === 2;
    const idle = t => {
      t[o + ph] = 0;
      t[o + ow] = 0;
    };
    if (flying && !dead) {
      if (asking)
        to(`P${r + 1}'s money moves`, t => {
          t[o + moved] = 1;
          t[o + fly] &= 2;
          t[o + ph] = PAID;
        });
      if (check.faults || !asking)
        to(`P${r + 1}'s money moves, the reply is lost`, t => {
          t[o + moved] = 1;
          t[o + fly] &= 2;
          idle(t);
        });
    }
    if (check.faults) {
      if (flying)
        to(`the ask for P${r + 1} is lost`, t => {
          t[o + fly] &= 2;
          idle(t);
        });
      if (flying && asking) to(`no reply for P${r + 1} in time`, idle);
      if (flying && asking && s[o + asks] === 1 && !s[o + moved])
        to(`the facilitator refuses P${r + 1}`, t => {
          t[o + fly] &= 2;
          t[o + st] = RELEASED;
          idle(t);
        });
      if (s[o + st] === SETTLING && !dead)
        to(`the blockhash of P${r + 1} dies`, t => {
          t[o + fly] = 2;
        });
    }
    if (s[o + ph] === PAID && up)
      to(`${srv(v)} writes down that P${r + 1} is delivered`, t => {
        t[o + st] = DELIVERED;
        idle(t);
      });
    if (check.unwritten && s[o + ph] === PAID && up)
      to(
        `${srv(v)} can't write down that P${r + 1} is delivered: it answers, and nothing records that`,
        t => {
          for (let i = 0; i < t[USED]; i++) {
            const q = R0 + i * REQ;
            if (t[q + rr] !== r || t[q + rs] !== v || ![OPEN, FIN].includes(t[q + rk])) continue;
            if (t[q + rc] === WAITING) {
              t[ANSWERED] = 1;
              t[q + rc] = LEFT;
            }
            t[q + rk] = CLOSED;
          }
          idle(t);
        },
      );
    if (s[o + st] === SETTLING && s[o + moved] && s[o + ph] !== PAID)
      to(`P${r + 1} is found on chain: delivered`, t => {
        t[o + st] = DELIVERED;
        idle(t);
      });
    if (s[o + st] === SETTLING && dead && !s[o + moved])
      to(`P${r + 1} is proven absent: released`, t => {
        t[o + st] = RELEASED;
        idle(t);
      });
    if (s[o + st] === SETTLING && !s[o + ph] && !dead && !s[o + moved] && !flying) {
      // the second settle request, while a request is waiting for the row
      const w = someOpen(s, r);
      if (w)
        to(`${srv(w - 1)} asks again for P${r + 1}`, t => {
          t[o + ow] = w;
          t[o + ph] = ASKED;
          t[o + asks] = 2;
          t[o + fly] |= 1;
        });
    }
  }

  /** The transaction that moves a payment to settling: payer lock, look at equal calls, then attach, wait, or settle. */
  function settle(s, r, v, to) {
    const o = r * ROW,
      who = `${srv(v)}`;
    const wanted = rule.gate ? present(s, o) : someOpen(s, r, v) > 0;
    if (check.identified && wanted) {
      let paid = false;
      for (let x = 0; x < NP; x++)
        if (x !== r && !s[x * ROW + al] && [SETTLING, DELIVERED].includes(s[x * ROW + st])) paid = true;
      if (paid && rule.once)
        return to(`${who} drops P${r + 1}: its identifier was paid for`, t => {
          t[o + ph] = 0;
          t[o + ow] = 0;
        });
      return to(`${who} moves P${r + 1} to settling`, t => {
        t[o + st] = SETTLING;
        t[o + ph] = COMMITTED;
      });
    }
    if (!wanted)
      return to(`${who} drops P${r + 1}: nobody waits for it`, t => {
        t[o + ph] = 0;
        t[o + ow] = 0;
      });
    const paid = [],
      claimed = [];
    for (let x = 0; x < NP; x++) {
      const e = x * ROW;
      if (x === r || s[e + al] || ![CLAIMED, SETTLING, DELIVERED].includes(s[e + st])) continue;
      const before = s[e + n] === 1 || !(s[e + older] & (1 << r)); // written before this payment came, or to its only caller
      if (
        s[e + st] === DELIVERED &&
        (rule.newest ? s[e + wt] === s[e + n] && (!rule.order || before) : s[e + wt] > 0)
      )
        continue; // written out
      const itsOwn = present(s, e) && (!rule.sole || s[e + n] === 1);
      if (itsOwn && rule.wait && s[e + seen] >= s[o + age]) return; // not seen since this payment came: wait until a renewal comes or is overdue
      if (!itsOwn) (s[e + st] === CLAIMED ? claimed : paid).push(x);
    }
    const bind = (t, target) => {
      if (rule.void)
        for (const x of claimed) {
          const e = x * ROW;
          t[e + al] = target + 1;
          t[e + ph] = 0;
          t[e + ow] = 0;
          t[e + seen] = C;
          t[e + gone] = 1;
        }
    };
    if (paid.length === 0)
      return to(
        `${who} moves P${r + 1} to settling${rule.void && claimed.length ? `, ${claimed.map(name)} becomes its alias` : ''}`,
        t => {
          t[o + st] = SETTLING;
          t[o + ph] = COMMITTED;
          bind(t, r);
        },
      );
    for (const x of paid)
      to(`${who} makes P${r + 1} an alias of P${x + 1}`, t => {
        bind(t, x);
        t[o + al] = x + 1;
        t[o + ph] = 0;
        t[o + ow] = 0;
        for (let i = 0; i < t[USED]; i++) {
          const q = R0 + i * REQ;
          if (
            t[q + rr] === r &&
            t[q + rk] === OPEN &&
            t[q + rs] === v &&
            (!rule.join || (t[q + rw] === t[o + n] && !t[o + gone]))
          )
            joins(t, q, x, true);
        }
        t[o + seen] = C;
        t[o + gone] = 1;
      });
  }

  // ---- servers and time ----------------------------------------------------------------------------------------------------
  function server(s, v, to) {
    if (s[S0 + v] === 1 && s[CRASHES] && s[USED])
      to(`${srv(v)} is killed`, t => {
        t[S0 + v] = 0;
        t[CRASHES]--;
        for (let i = 0; i < t[USED]; i++) {
          const q = R0 + i * REQ;
          if (t[q + rs] !== v || t[q + rk] === CLOSED || t[q + rk] === 0) continue;
          if (rule.crashKnown) t[t[q + rr] * ROW + seen] = C;
          ended(t, q);
        }
        for (let r = 0; r < NP; r++)
          if (t[r * ROW + ow] === v + 1) {
            t[r * ROW + ow] = 0;
            t[r * ROW + ph] = 0;
          }
      });
    if (s[S0 + v] === 0)
      to(`${srv(v)} starts again`, t => {
        t[S0 + v] = 1;
      });
    if (s[S0 + v] === 1 && s[PAUSES] && s[USED])
      to(`${srv(v)} is stopped for a while`, t => {
        t[S0 + v] = 2;
        t[PAUSES]--;
      });
    if (s[S0 + v] === 2)
      to(`${srv(v)} goes on`, t => {
        t[S0 + v] = 1;
      });
  }
  /** A running server notices a hang-up and renews its callers within a tick. */
  function tick(s, to) {
    for (let i = 0; i < s[USED]; i++)
      if (s[R0 + i * REQ + rk] === FIN && s[S0 + s[R0 + i * REQ + rs]] === 1) return;
    to('time passes', t => {
      for (let r = 0; r < NP; r++) {
        const o = r * ROW;
        if (t[o + st] === NONE) continue;
        t[o + age] = min(AGE, t[o + age] + 1);
        t[o + seen] = min(C, t[o + seen] + 1);
      }
      for (let i = 0; i < t[USED]; i++) {
        const q = R0 + i * REQ,
          o = t[q + rr] * ROW;
        if (t[q + rk] !== OPEN || t[S0 + t[q + rs]] !== 1 || t[o + al]) continue;
        if (!rule.watch && t[o + seen] === C) continue; // today nothing revives a caller that was noted as gone
        if (!rule.sole || (t[q + rw] === t[o + n] && !t[o + gone])) t[o + seen] = 0; // where callers = mine and caller_until > 0
      }
    });
  }
  /** Forgets data that can't matter any more, so that equivalent states become equal. */
  function tidy(t) {
    for (let i = 0; i < t[USED]; i++) {
      const q = R0 + i * REQ;
      if (t[q + rk] === CLOSED && t[q + rc] === LEFT) t[q + rp] = t[q + rs] = t[q + rr] = t[q + rw] = 0;
    }
    let sum = 0;
    for (let r = 0; r < NP; r++) sum += t[r * ROW + moved];
    if (!check.two && sum > 1) t[BAD] = 1;
    if (check.two) for (let r = 0; r < NP; r++) if (t[r * ROW + al]) t[BAD] = 3;
    if (t[ANSWERED] && t[USED] === NR && !check.two) t[MAYSIGN] = 0;
  }
  const bad = s =>
    [
      '',
      'P-once: charged twice',
      'P-free: an answer nobody paid',
      'P-two: a sale of its own became an alias',
    ][s[BAD]];
  const waitsInVain = s =>
    !s[ANSWERED] && s[USED] < NR && Array.from({ length: NP }, (_, r) => s[r * ROW + moved]).includes(1);
  const good = s =>
    check.two
      ? Array.from({ length: NP }, (_, r) => s[r * ROW + st] === DELIVERED && s[r * ROW + moved]).every(
          Boolean,
        )
      : s[ANSWERED];
  return { initial, steps, bad, good, open: check.two ? () => true : waitsInVain };
}

/**
 * Searches breadth first, so that the first violation has the shortest trace. With `live`, also checks that a good
 * state is reachable from every open one.
 */
export function explore(rule, check, max = 6_000_000) {
  const m = machine(rule, check),
    live = check.lost || check.two;
  const key = s => Buffer.from(s).toString('latin1');
  const states = [m.initial()],
    from = [-1],
    how = ['']; // how: interned strings
  const index = new Map([[key(states[0]), 0]]),
    texts = new Map(),
    edges = [];
  const trace = i => {
    const out = [];
    for (; i > 0; i = from[i]) out.unshift(how[i]);
    return out;
  };
  for (let i = 0; i < states.length; i++) {
    let found;
    m.steps(states[i], (text, t) => {
      const k = key(t);
      let j = index.get(k);
      if (j === undefined) {
        j = states.length;
        index.set(k, j);
        states.push(t);
        from.push(i);
        if (!texts.has(text)) texts.set(text, text);
        how.push(texts.get(text));
        if (m.bad(t) && found === undefined) found = j;
      }
      if (live) edges.push(i, j);
    });
    if (found !== undefined)
      return { states: states.length, violation: m.bad(states[found]), trace: trace(found) };
    if (!live) states[i] = undefined;
    if (states.length > max) return { states: states.length, bounded: true };
  }
  if (live) {
    const ok = new Uint8Array(states.length),
      back = states.map(() => []);
    for (let e = 0; e < edges.length; e += 2) back[edges[e + 1]].push(edges[e]);
    const queue = [];
    states.forEach((s, i) => {
      if (m.good(s)) {
        ok[i] = 1;
        queue.push(i);
      }
    });
    while (queue.length)
      for (const i of back[queue.pop()])
        if (!ok[i]) {
          ok[i] = 1;
          queue.push(i);
        }
    const stuck = states.findIndex((s, i) => !ok[i] && m.open(s));
    if (stuck >= 0)
      return {
        states: states.length,
        violation: 'P-lost: no way to the answer from here',
        trace: trace(stuck),
      };
  }
  return { states: states.length };
}

const PLAN = [
  ...['calm', 'plain'].map(c => ['today', c]),
  ...['plain', 'calm', 'calm-crash', 'two'].map(c => ['proposed', c]),
  ...[
    'plain',
    'crash',
    'pause',
    'lost',
    'proxy',
    'proxy-crash',
    'proxy-pause',
    'proxy-lost',
    'proxy4',
    'two',
    'three',
  ].map(c => ['fixed', c]),
  ...['stranger', 'stranger-crash', 'stranger-proxy', 'stranger-lost'].map(c => ['fixed', c]),
  ...['older', 'older3', 'older-crash', 'older-pause', 'older-proxy', 'older-proxy4', 'older-lost'].map(c => [
    'fixed',
    c,
  ]),
  ...['identified', 'identified-crash', 'identified-pause', 'identified3', 'identified-lost'].map(c => [
    'fixed',
    c,
  ]),
  ...['unwritten', 'unwritten-crash', 'unwritten-proxy', 'unwritten-lost', 'unwritten-identified'].map(c => [
    'fixed',
    c,
  ]),
  ...['pickup', 'pickup-identified', 'all'].map(c => ['fixed', c]),
  ...['any', 'late', 'two-pause', 'older-any'].map(c => ['fixed', c]),
  ['fixed-once', 'identified'],
  ['fixed-neither', 'identified'],
  ['fixed-sole', 'proxy'],
  ['fixed-void', 'proxy'],
  ['fixed-wait', 'plain'],
  ['fixed-wait', 'calm-crash'],
  ['fixed-newest', 'proxy'],
  ['fixed-order', 'proxy4'],
  ['fixed-join', 'proxy4'],
  ['fixed-note', 'proxy'],
  ['fixed-early', 'stranger'],
];
/** The checks that no protocol can pass (docs/explanation/promises.md, "What is not promised"). */
const BEYOND = ['any', 'late', 'two-pause'];
/** One check of each kind that takes only seconds. */
const QUICK = [
  ...['older-proxy', 'older-crash', 'identified-lost', 'unwritten-proxy', 'pickup', 'proxy-crash', 'two'].map(
    c => ['fixed', c],
  ),
  ...['any', 'older-any'].map(c => ['fixed', c]),
  ['fixed-neither', 'identified'],
  ['fixed-wait', 'calm-crash'],
  ['fixed-newest', 'proxy'],
  ['fixed-sole', 'proxy'],
];
const asked = process.argv.slice(2).filter(a => !a.includes('='));
const max = Number(process.argv.find(a => a.startsWith('MAX='))?.slice(4) ?? 6_000_000);
const chosen = asked.length === 2 ? [asked] : asked[0] === 'quick' ? QUICK : PLAN;
let passed = 0;
for (const [protocol, check] of chosen) {
  const started = Date.now();
  const result = explore(PROTOCOLS[protocol], CHECKS[check], max);
  const mustHold = protocol === 'fixed' && !BEYOND.includes(check);
  const asExpected = mustHold === (result.violation === undefined);
  if (asExpected) passed += 1;
  const verdict = result.violation ?? (result.bounded ? 'no violation so far (bounded)' : 'holds');
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  console.log(
    `${protocol.padEnd(16)} ${check.padEnd(20)} ${String(result.states).padStart(9)} states ${seconds.padStart(6)} s  ${verdict}${asExpected ? '' : '  UNEXPECTED'}`,
  );
  if (!asExpected || asked.length === 2)
    result.trace?.forEach((line, n) => console.log(`    ${String(n + 1).padStart(2)}. ${line}`));
}
console.log(`${passed} passed, ${chosen.length - passed} failed`);
if (passed < chosen.length) process.exitCode = 1;
