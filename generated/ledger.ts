// Made of src/ledger/statements.ts and migrations.ts by `make generate`: change those.
import type { LedgerSql } from '../src/ledger/generate.js';

export const LEDGER_SQL: { readonly [name in 'sqlite' | 'postgres']: LedgerSql } = {
  sqlite: {
    metaTable: 'create table if not exists "meta" ("key" text primary key, "value" text not null)',
    migrations: [
      [
        'create table "payments" ("id" text primary key, "operation" text not null, "request_hash" text not null, "request" text, "payer" text not null, "amount" text not null, "network" text not null, "x402_version" bigint not null, "signed_transaction" text not null, "identifier" text, "flow" text not null, "state" text not null, "claim" bigint not null, "owner" text not null, "lease_until" bigint not null, "caller_until" bigint not null, "runs" bigint not null, "asks" bigint not null, "claim_slot" bigint not null, "claim_height" bigint not null, "settlement" text, "reason" text, "alias_of" text, "created_at" bigint not null, "settling_at" bigint, "settled_at" bigint, "decided_at" bigint, "written_at" bigint, "audited_at" bigint, "answer_expires_at" bigint)',
        'create table "answers" ("payment" text not null primary key references "payments" ("id") on delete cascade, "status" bigint not null, "headers" text not null, "size" bigint not null, "saved_at" bigint not null, "body" blob not null)',
        'create table "payers" ("payer" text primary key, "known" bigint not null, "delivered_at" bigint not null, "refused_at" bigint)',
        'create table "orders" ("payment" text not null primary key references "payments" ("id"), "request" text not null, "wanted" bigint not null, "deadline" bigint not null, "attempts" bigint not null, "intent" text, "created_at" bigint not null, "finished_at" bigint)',
        'create table "replies" ("payment" text not null references "orders" ("payment"), "reply" text not null, "number" bigint not null, "text" text not null, "sentiment" text not null, "respondent" text not null, "inferred" bigint not null, "house" bigint not null, "created_at" bigint not null, "rejected_at" bigint, constraint "replies_key" primary key ("payment", "reply"), constraint "replies_respondent" unique ("payment", "respondent"))',
        'create index "payments_open" on "payments" ("payer", "state") where "written_at" is null',
        'create index "payments_undecided" on "payments" ("state") where "decided_at" is null',
        'create index "payments_identifier" on "payments" ("payer", "identifier") where "identifier" is not null',
        'create index "payments_answered" on "payments" ("answer_expires_at") where "answer_expires_at" is not null',
        'create index "payments_unaudited" on "payments" ("settled_at") where settled_at is not null and audited_at is null',
        'create index "orders_open" on "orders" ("created_at") where finished_at is null',
        'create index "payments_created" on "payments" ("created_at", "id")',
      ],
    ],
    statements: {
      find: p => ({
        sql: 'select * from "payments" where "id" = ?',
        parameters: [p.id],
        single: true,
      }),
      findToChange: p => ({
        sql: 'select * from "payments" where "id" = ?',
        parameters: [p.id],
        single: true,
      }),
      lockPayer: p => ({
        sql: 'select 1 as "one" where pg_advisory_xact_lock(hashtextextended(?, 0)) is not null',
        parameters: [p.payer],
        single: false,
      }),
      sameIdentifier: p => ({
        sql: 'select * from "payments" where "payer" = ? and "identifier" is not null and "identifier" = ? and "id" <> ? and "alias_of" is null and ("state" in (?, ?, ?, ?) or ("state" = ? and "lease_until" > ?)) limit ?',
        parameters: [p.payer, p.identifier, p.id, "settling", "delivered", "owed", "refunded", "claimed", p.now, 1],
        single: true,
      }),
      claimView: p => ({
        sql: 'select count(*) as "payments", cast(coalesce(sum(cast(amount as bigint)), 0) as text) as "amount", (select "known" from "payers" where "payers"."payer" = ?) as "known", (select "id" from "payments" where "id" = ?) as "seen", (select "id" from "payments" where "written_at" is null and "state" in (?, ?, ?) and "identifier" is null and ("caller_until" <= ? or 1 = 0) and ("state" <> ? or "answer_expires_at" > ?) and "payer" = ? and "request_hash" = ? and "operation" = ? order by "created_at" limit ?) as "earlier" from "payments" where "payer" = ? and "written_at" is null and "state" in (?, ?) and ("state" = ? or "lease_until" > ?)',
        parameters: [p.payer, p.id, "settling", "owed", "delivered", p.now, "delivered", p.now, p.payer, p.request_hash, p.operation, 1, p.payer, "claimed", "settling", "settling", p.now],
        single: true,
      }),
      insert: p => ({
        sql: 'insert into "payments" ("id", "operation", "request_hash", "request", "payer", "amount", "network", "x402_version", "signed_transaction", "identifier", "flow", "state", "claim", "owner", "lease_until", "caller_until", "runs", "asks", "claim_slot", "claim_height", "created_at") values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \'claimed\', ?, ?, ?, ?, ?, 0, ?, ?, ?) on conflict do nothing returning "id"',
        parameters: [p.id, p.operation, p.request_hash, p.request, p.payer, p.amount, p.network, p.x402_version, p.signed_transaction, p.identifier, p.flow, p.claim, p.owner, p.lease_until, p.caller_until, p.runs, p.claim_slot, p.claim_height, p.created_at],
        single: true,
      }),
      retake: p => ({
        sql: 'update "payments" set "operation" = ?, "request_hash" = ?, "request" = ?, "x402_version" = ?, "signed_transaction" = ?, "identifier" = ?, "flow" = ?, "claim" = ?, "owner" = ?, "lease_until" = ?, "caller_until" = ?, "runs" = ?, "claim_height" = ? where "id" = ? and "state" = ? returning "id"',
        parameters: [p.operation, p.request_hash, p.request, p.x402_version, p.signed_transaction, p.identifier, p.flow, p.claim, p.owner, p.lease_until, p.caller_until, p.runs, p.claim_height, p.id, "claimed"],
        single: false,
      }),
      settle: p => ({
        sql: 'update "payments" set "state" = ?, "asks" = asks + 1, "settling_at" = ?, "settlement" = ?, "signed_transaction" = coalesce(?, "signed_transaction") where "state" in (?) and "id" = ? and "claim" = ? and "owner" = ? and "alias_of" is null and "lease_until" > ? returning (select "size" from "answers" where "payment" = ?) as "answered"',
        parameters: ["settling", p.now, p.settlement, p.signed_transaction, "claimed", p.id, p.claim, p.owner, p.now, p.id],
        single: true,
      }),
      askAgain: p => ({
        sql: 'update "payments" set "asks" = asks + 1 where "state" = ? and "id" = ? and "claim" = ? and "owner" = ? returning "id"',
        parameters: ["settling", p.id, p.claim, p.owner],
        single: false,
      }),
      deliverByWork: p => ({
        sql: 'update "payments" set "state" = ?, "settlement" = ?, "settled_at" = coalesce("settled_at", ?), "decided_at" = ?, "answer_expires_at" = ? where "state" in (?, ?) and "id" = ? and "claim" = ? and "owner" = ? returning "payer"',
        parameters: ["delivered", p.settlement, p.now, p.now, p.answer_expires_at, "settling", "owed", p.id, p.claim, p.owner],
        single: true,
      }),
      deliverByChain: p => ({
        sql: 'update "payments" set "state" = ?, "settlement" = ?, "settled_at" = coalesce("settled_at", ?), "decided_at" = ?, "answer_expires_at" = ? where "state" in (?, ?, ?) and "id" = ? and "claim" = ? and "owner" = ? returning "payer"',
        parameters: ["delivered", p.settlement, p.now, p.now, p.answer_expires_at, "settling", "released", "owed", p.id, p.claim, p.owner],
        single: true,
      }),
      oweByWork: p => ({
        sql: 'update "payments" set "state" = ?, "settlement" = ?, "settled_at" = ?, "decided_at" = ?, "reason" = ?, "answer_expires_at" = ? where "state" in (?) and "id" = ? and "claim" = ? and "owner" = ? returning "id"',
        parameters: ["owed", p.settlement, p.now, null, null, null, "settling", p.id, p.claim, p.owner],
        single: false,
      }),
      oweByChain: p => ({
        sql: 'update "payments" set "state" = ?, "settlement" = ?, "settled_at" = ?, "decided_at" = ?, "reason" = ?, "answer_expires_at" = ? where "state" in (?, ?) and "id" = ? and "claim" = ? and "owner" = ? returning "id"',
        parameters: ["owed", p.settlement, p.now, null, null, null, "settling", "released", p.id, p.claim, p.owner],
        single: false,
      }),
      release: p => ({
        sql: 'update "payments" set "state" = ?, "reason" = ?, "decided_at" = ?, "lease_until" = ?, "caller_until" = ?, "answer_expires_at" = ? where "state" in (?) and "id" = ? and "claim" = ? and "owner" = ? returning "id"',
        parameters: ["released", p.reason, p.now, 0, 0, p.now, "settling", p.id, p.claim, p.owner],
        single: false,
      }),
      refund: p => ({
        sql: 'update "payments" set "state" = ?, "reason" = ?, "decided_at" = ?, "lease_until" = ?, "caller_until" = ?, "answer_expires_at" = ?, "claim" = claim + 1 where "state" in (?) and "id" = ? returning "id"',
        parameters: ["refunded", p.reason, p.now, 0, 0, p.now, "owed", p.id],
        single: false,
      }),
      lease: p => ({
        sql: 'update "payments" set "lease_until" = ?, "caller_until" = ? where "id" = ? and "claim" = ? and "owner" = ? and "alias_of" is null returning "id"',
        parameters: [p.lease_until, p.lease_until, p.id, p.claim, p.owner],
        single: false,
      }),
      hold: p => ({
        sql: 'update "payments" set "lease_until" = ? where "id" = ? and "claim" = ? and "owner" = ? and "alias_of" is null returning "id"',
        parameters: [p.lease_until, p.id, p.claim, p.owner],
        single: false,
      }),
      endClaim: p => ({
        sql: 'update "payments" set "lease_until" = ?, "caller_until" = ?, "runs" = ?, "claim" = claim + 1 where "state" = ? and "id" = ? and "claim" = ? and "owner" = ? returning "id"',
        parameters: [0, 0, p.runs, "claimed", p.id, p.claim, p.owner],
        single: false,
      }),
      adopt: p => ({
        sql: 'update "payments" set "claim" = ?, "owner" = ?, "lease_until" = ?, "caller_until" = case when 1 = 0 then 0 else "caller_until" end where "id" = ? and "state" <> ? returning "id"',
        parameters: [p.claim, p.owner, p.lease_until, p.id, "claimed"],
        single: false,
      }),
      attach: p => ({
        sql: 'update "payments" set "alias_of" = ?, "lease_until" = ?, "caller_until" = ? where "state" = ? and "id" = ? and "claim" = ? and "owner" = ? returning "id"',
        parameters: [p.alias_of, 0, 0, "claimed", p.id, p.claim, p.owner],
        single: false,
      }),
      attachable: p => ({
        sql: 'select * from "payments" where "written_at" is null and "state" in (?, ?, ?) and "identifier" is null and ("caller_until" <= ? or 1 = 0) and ("state" <> ? or "answer_expires_at" > ?) and "payer" = ? and "request_hash" = ? and "operation" = ? order by "created_at" limit ?',
        parameters: ["settling", "owed", "delivered", p.now, "delivered", p.now, p.payer, p.request_hash, p.operation, 1],
        single: true,
      }),
      findToAttach: p => ({
        sql: 'select * from "payments" where "written_at" is null and "state" in (?, ?, ?) and "identifier" is null and ("caller_until" <= ? or 1 = 0) and ("state" <> ? or "answer_expires_at" > ?) and "id" = ?',
        parameters: ["settling", "owed", "delivered", p.now, "delivered", p.now, p.id],
        single: true,
      }),
      written: p => ({
        sql: 'update "payments" set "written_at" = ?, "lease_until" = ?, "caller_until" = ? where "id" = ? and "state" = ? and "written_at" is null returning "id"',
        parameters: [p.now, 0, 0, p.id, "delivered"],
        single: true,
      }),
      callerGone: p => ({
        sql: 'update "payments" set "caller_until" = ? where "id" = ? and "caller_until" > ? and "alias_of" is null returning "id"',
        parameters: [0, p.id, 0],
        single: false,
      }),
      endLeases: () => ({
        sql: 'update "payments" set "lease_until" = ?, "caller_until" = ? where "written_at" is null and ("lease_until" > ? or "caller_until" > ?)',
        parameters: [0, 0, 0, 0],
        single: false,
      }),
      holdForAnswer: p => ({
        sql: 'select "payments"."state", "answers"."size" from "payments" left join "answers" on "answers"."payment" = "payments"."id" where "payments"."id" = ? and "claim" = ? and "owner" = ? and "state" in (?, ?, ?, ?)',
        parameters: [p.id, p.claim, p.owner, "claimed", "settling", "released", "owed"],
        single: true,
      }),
      saveAnswer: p => ({
        sql: 'insert into "answers" ("payment", "status", "headers", "size", "saved_at", "body") values (?, ?, ?, ?, ?, ?) on conflict ("payment") do update set "status" = "excluded"."status", "headers" = "excluded"."headers", "size" = "excluded"."size", "saved_at" = "excluded"."saved_at", "body" = "excluded"."body"',
        parameters: [p.payment, p.status, p.headers, p.size, p.saved_at, p.body],
        single: false,
      }),
      answer: p => ({
        sql: 'select "status", "headers", "body", "answer_expires_at" from "answers" inner join "payments" on "payments"."id" = "answers"."payment" where "answers"."payment" = ?',
        parameters: [p.id],
        single: true,
      }),
      dropAnswer: p => ({
        sql: 'delete from "answers" where "payment" = ? returning "size"',
        parameters: [p.id],
        single: false,
      }),
      answerBytes: () => ({
        sql: 'select cast(coalesce(sum(size), 0) as text) as "bytes" from "answers"',
        parameters: [],
        single: false,
      }),
      dead: p => ({
        sql: 'select "p"."id" from "payments" as "p" where "p"."state" = ? and "p"."decided_at" is null and "p"."lease_until" <= ? and "p"."claim_height" < ? and not exists (select "target"."id" from "payments" as "target" where "target"."id" = "p"."alias_of" and ("target"."state" in (?, ?) or "target"."answer_expires_at" is not null)) limit ?',
        parameters: ["claimed", p.now, p.height, "settling", "owed", p.limit],
        single: false,
      }),
      remove: p => ({
        sql: 'delete from "payments" where "id" = ? and "state" = ? returning "id"',
        parameters: [p.id, "claimed"],
        single: false,
      }),
      expired: p => ({
        sql: 'select "id" from "payments" where "answer_expires_at" is not null and "answer_expires_at" <= ? limit ?',
        parameters: [p.now, p.limit],
        single: false,
      }),
      forgetAnswer: p => ({
        sql: 'update "payments" set "answer_expires_at" = ? where "id" = ?',
        parameters: [null, p.id],
        single: false,
      }),
      knowPayer: p => ({
        sql: 'insert into "payers" ("payer", "known", "delivered_at", "refused_at") values (?, ?, ?, ?) on conflict ("payer") do update set "known" = ?, "delivered_at" = "excluded"."delivered_at" where "payers"."known" = ?',
        parameters: [p.payer, 1, p.now, null, 1, 0],
        single: false,
      }),
      refusePayer: p => ({
        sql: 'update "payers" set "known" = ?, "refused_at" = ? where "payer" = ?',
        parameters: [0, p.now, p.payer],
        single: false,
      }),
      payerKnown: p => ({
        sql: 'select "known" from "payers" where "payer" = ?',
        parameters: [p.payer],
        single: false,
      }),
      audited: p => ({
        sql: 'update "payments" set "audited_at" = ? where "id" = ? returning "id"',
        parameters: [p.now, p.id],
        single: false,
      }),
      unaudited: p => ({
        sql: 'select * from "payments" where "settled_at" is not null and "audited_at" is null and "settled_at" <= ? and "settled_at" >= ? and ("settled_at" > ? or "id" > ?) order by "settled_at", "id" limit ?',
        parameters: [p.before, p.settled_at, p.settled_at, p.id, p.limit],
        single: false,
      }),
      counts: () => ({
        sql: 'select "state", count(*) as "payments", cast(coalesce(sum(cast(amount as bigint)), 0) as text) as "amount" from "payments" where "alias_of" is null group by "state"',
        parameters: [],
        single: false,
      }),
      turnover: () => ({
        sql: 'select settled_at / 86400000 as "day", "operation", "state", count(*) as "payments", cast(coalesce(sum(cast(amount as bigint)), 0) as text) as "amount" from "payments" where "settled_at" is not null and "alias_of" is null group by settled_at / 86400000, "operation", "state" order by "day", "operation", "state"',
        parameters: [],
        single: false,
      }),
      startingWith: p => ({
        sql: 'select * from "payments" where "id" >= ? and "id" < ? order by "id" limit ?',
        parameters: [p.prefix, p.end, 2],
        single: false,
      }),
      answerFacts: p => ({
        sql: 'select "status", "size", "saved_at" from "answers" where "payment" = ?',
        parameters: [p.id],
        single: false,
      }),
      firstSlot: () => ({
        sql: 'select min("claim_slot") as "slot" from "payments"',
        parameters: [],
        single: false,
      }),
      ownMeta: () => ({
        sql: 'select * from "meta" where "key" in (?, ?, ?, ?, ?)',
        parameters: ["schema", "pay_to", "network", "retired", "arriving"],
        single: false,
      }),
      identity: () => ({
        sql: 'select * from "meta" where "key" in (?, ?, ?)',
        parameters: ["pay_to", "network", "retired"],
        single: false,
      }),
      getMeta: p => ({
        sql: 'select "value" from "meta" where "key" = ?',
        parameters: [p.key],
        single: false,
      }),
      setMeta: p => ({
        sql: 'insert into "meta" ("key", "value") values (?, ?) on conflict ("key") do update set "value" = "excluded"."value"',
        parameters: [p.key, p.value],
        single: false,
      }),
      list: p => ({
        sql: 'select * from "payments" where "state" = coalesce(?, "state") and "payer" = coalesce(?, "payer") and "operation" = coalesce(?, "operation") and "lease_until" <= ? and "created_at" >= ? and ("created_at" > ? or "id" > ?) order by "created_at" asc, "id" asc limit ?',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listNewest: p => ({
        sql: 'select * from "payments" where "state" = coalesce(?, "state") and "payer" = coalesce(?, "payer") and "operation" = coalesce(?, "operation") and "lease_until" <= ? and "created_at" >= ? and ("created_at" > ? or "id" > ?) order by "created_at" desc, "id" desc limit ?',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listUndecided: p => ({
        sql: 'select * from "payments" where "state" = ? and "decided_at" is null and "payer" = coalesce(?, "payer") and "operation" = coalesce(?, "operation") and "lease_until" <= ? and "created_at" >= ? and ("created_at" > ? or "id" > ?) order by created_at + 0 asc, "id" asc limit ?',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listUndecidedNewest: p => ({
        sql: 'select * from "payments" where "state" = ? and "decided_at" is null and "payer" = coalesce(?, "payer") and "operation" = coalesce(?, "operation") and "lease_until" <= ? and "created_at" >= ? and ("created_at" > ? or "id" > ?) order by created_at + 0 desc, "id" desc limit ?',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listBooked: p => ({
        sql: 'select * from "payments" where "state" = coalesce(?, "state") and "payer" = coalesce(?, "payer") and "operation" = coalesce(?, "operation") and "lease_until" <= ? and "created_at" >= ? and ("created_at" > ? or "id" > ?) and settling_at is not null and alias_of is null and created_at < ?\n          and coalesce(settled_at, created_at) >= ? and coalesce(settled_at, created_at) < ? order by "created_at" asc, "id" asc limit ?',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.to, p.from, p.to, p.limit],
        single: false,
      }),
      order: p => ({
        sql: 'select * from "orders" where "payment" = ?',
        parameters: [p.payment],
        single: false,
      }),
      orderToChange: p => ({
        sql: 'select * from "orders" where "payment" = ?',
        parameters: [p.payment],
        single: false,
      }),
      openOrders: p => ({
        sql: 'select *, (select count(*) as "replies" from "replies" where "replies"."payment" = "orders"."payment" and "rejected_at" is null) as "replies" from "orders" where "payment" in (select "id" from "payments" where "state" = ? and "decided_at" is null) and "finished_at" is null order by "created_at", "payment" limit ?',
        parameters: ["owed", p.limit],
        single: false,
      }),
      insertOrder: p => ({
        sql: 'insert into "orders" ("payment", "request", "wanted", "deadline", "attempts", "intent", "created_at", "finished_at") values (?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing',
        parameters: [p.payment, p.request, p.wanted, p.deadline, 1, null, p.now, null],
        single: false,
      }),
      finishOrder: p => ({
        sql: 'update "orders" set "finished_at" = ? where "payment" = ? and "finished_at" is null returning "payment"',
        parameters: [p.now, p.payment],
        single: false,
      }),
      finishAttempt: p => ({
        sql: 'update "orders" set "finished_at" = ? where "payment" = ? and "attempts" = ? and "finished_at" is null returning "payment"',
        parameters: [p.now, p.payment, p.attempt],
        single: false,
      }),
      reopenOrder: p => ({
        sql: 'update "orders" set "attempts" = "attempts" + ?, "deadline" = ?, "finished_at" = ? where "payment" = ? and "finished_at" is not null returning *',
        parameters: [1, p.deadline, null, p.payment],
        single: false,
      }),
      saveIntent: p => ({
        sql: 'update "orders" set "intent" = ? where "payment" = ? returning "payment"',
        parameters: [p.intent, p.payment],
        single: false,
      }),
      everyReply: p => ({
        sql: 'select "reply", "respondent", "house", "rejected_at", "number" from "replies" where "payment" = ? order by "number"',
        parameters: [p.payment],
        single: false,
      }),
      replies: p => ({
        sql: 'select * from "replies" where "payment" = ? and "rejected_at" is null order by "number"',
        parameters: [p.payment],
        single: false,
      }),
      insertReply: p => ({
        sql: 'insert into "replies" ("payment", "reply", "number", "text", "sentiment", "respondent", "inferred", "house", "created_at", "rejected_at") values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        parameters: [p.payment, p.reply, p.number, p.text, p.sentiment, p.respondent, p.inferred, p.house, p.created_at, null],
        single: false,
      }),
      removeReply: p => ({
        sql: 'delete from "replies" where "payment" = ? and "reply" = ?',
        parameters: [p.payment, p.reply],
        single: false,
      }),
      rejectReply: p => ({
        sql: 'update "replies" set "rejected_at" = ? where "payment" = ? and "reply" = ? and "rejected_at" is null returning "reply"',
        parameters: [p.now, p.payment, p.reply],
        single: false,
      }),
    },
  },
  postgres: {
    metaTable: 'create table if not exists "meta" ("key" text primary key, "value" text not null)',
    migrations: [
      [
        'create table "payments" ("id" text primary key, "operation" text not null, "request_hash" text not null, "request" text, "payer" text not null, "amount" text not null, "network" text not null, "x402_version" bigint not null, "signed_transaction" text not null, "identifier" text, "flow" text not null, "state" text not null, "claim" bigint not null, "owner" text not null, "lease_until" bigint not null, "caller_until" bigint not null, "runs" bigint not null, "asks" bigint not null, "claim_slot" bigint not null, "claim_height" bigint not null, "settlement" text, "reason" text, "alias_of" text, "created_at" bigint not null, "settling_at" bigint, "settled_at" bigint, "decided_at" bigint, "written_at" bigint, "audited_at" bigint, "answer_expires_at" bigint)',
        'create table "answers" ("payment" text not null primary key references "payments" ("id") on delete cascade, "status" bigint not null, "headers" text not null, "size" bigint not null, "saved_at" bigint not null, "body" bytea not null)',
        'create table "payers" ("payer" text primary key, "known" bigint not null, "delivered_at" bigint not null, "refused_at" bigint)',
        'create table "orders" ("payment" text not null primary key references "payments" ("id"), "request" text not null, "wanted" bigint not null, "deadline" bigint not null, "attempts" bigint not null, "intent" text, "created_at" bigint not null, "finished_at" bigint)',
        'create table "replies" ("payment" text not null references "orders" ("payment"), "reply" text not null, "number" bigint not null, "text" text not null, "sentiment" text not null, "respondent" text not null, "inferred" bigint not null, "house" bigint not null, "created_at" bigint not null, "rejected_at" bigint, constraint "replies_key" primary key ("payment", "reply"), constraint "replies_respondent" unique ("payment", "respondent"))',
        'create index "payments_open" on "payments" ("payer", "state") where "written_at" is null',
        'create index "payments_undecided" on "payments" ("state") where "decided_at" is null',
        'create index "payments_identifier" on "payments" ("payer", "identifier") where "identifier" is not null',
        'create index "payments_answered" on "payments" ("answer_expires_at") where "answer_expires_at" is not null',
        'create index "payments_unaudited" on "payments" ("settled_at") where settled_at is not null and audited_at is null',
        'create index "orders_open" on "orders" ("created_at") where finished_at is null',
        'create index "payments_created" on "payments" ("created_at", "id")',
      ],
    ],
    statements: {
      find: p => ({
        sql: 'select * from "payments" where "id" = $1',
        parameters: [p.id],
        single: true,
      }),
      findToChange: p => ({
        sql: 'select * from "payments" where "id" = $1 for update',
        parameters: [p.id],
        single: true,
      }),
      lockPayer: p => ({
        sql: 'select 1 as "one" where pg_advisory_xact_lock(hashtextextended($1, 0)) is not null',
        parameters: [p.payer],
        single: false,
      }),
      sameIdentifier: p => ({
        sql: 'select * from "payments" where "payer" = $1 and "identifier" is not null and "identifier" = $2 and "id" <> $3 and "alias_of" is null and ("state" in ($4, $5, $6, $7) or ("state" = $8 and "lease_until" > $9)) limit $10',
        parameters: [p.payer, p.identifier, p.id, "settling", "delivered", "owed", "refunded", "claimed", p.now, 1],
        single: true,
      }),
      claimView: p => ({
        sql: 'select count(*) as "payments", cast(coalesce(sum(cast(amount as bigint)), 0) as text) as "amount", (select "known" from "payers" where "payers"."payer" = $1) as "known", (select "id" from "payments" where "id" = $2) as "seen", (select "id" from "payments" where "written_at" is null and "state" in ($3, $4, $5) and "identifier" is null and ("caller_until" <= $6 or pg_try_advisory_xact_lock_shared(8404, hashtext(owner))) and ("state" <> $7 or "answer_expires_at" > $8) and "payer" = $9 and "request_hash" = $10 and "operation" = $11 order by "created_at" limit $12) as "earlier" from "payments" where "payer" = $13 and "written_at" is null and "state" in ($14, $15) and ("state" = $16 or "lease_until" > $17)',
        parameters: [p.payer, p.id, "settling", "owed", "delivered", p.now, "delivered", p.now, p.payer, p.request_hash, p.operation, 1, p.payer, "claimed", "settling", "settling", p.now],
        single: true,
      }),
      insert: p => ({
        sql: 'insert into "payments" ("id", "operation", "request_hash", "request", "payer", "amount", "network", "x402_version", "signed_transaction", "identifier", "flow", "state", "claim", "owner", "lease_until", "caller_until", "runs", "asks", "claim_slot", "claim_height", "created_at") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \'claimed\', $12, $13, $14, $15, $16, 0, $17, $18, $19) on conflict do nothing returning "id"',
        parameters: [p.id, p.operation, p.request_hash, p.request, p.payer, p.amount, p.network, p.x402_version, p.signed_transaction, p.identifier, p.flow, p.claim, p.owner, p.lease_until, p.caller_until, p.runs, p.claim_slot, p.claim_height, p.created_at],
        single: true,
      }),
      retake: p => ({
        sql: 'update "payments" set "operation" = $1, "request_hash" = $2, "request" = $3, "x402_version" = $4, "signed_transaction" = $5, "identifier" = $6, "flow" = $7, "claim" = $8, "owner" = $9, "lease_until" = $10, "caller_until" = $11, "runs" = $12, "claim_height" = $13 where "id" = $14 and "state" = $15 returning "id"',
        parameters: [p.operation, p.request_hash, p.request, p.x402_version, p.signed_transaction, p.identifier, p.flow, p.claim, p.owner, p.lease_until, p.caller_until, p.runs, p.claim_height, p.id, "claimed"],
        single: false,
      }),
      settle: p => ({
        sql: 'update "payments" set "state" = $1, "asks" = asks + 1, "settling_at" = $2, "settlement" = $3, "signed_transaction" = coalesce($4, "signed_transaction") where "state" in ($5) and "id" = $6 and "claim" = $7 and "owner" = $8 and "alias_of" is null and "lease_until" > $9 returning (select "size" from "answers" where "payment" = $10) as "answered"',
        parameters: ["settling", p.now, p.settlement, p.signed_transaction, "claimed", p.id, p.claim, p.owner, p.now, p.id],
        single: true,
      }),
      askAgain: p => ({
        sql: 'update "payments" set "asks" = asks + 1 where "state" = $1 and "id" = $2 and "claim" = $3 and "owner" = $4 returning "id"',
        parameters: ["settling", p.id, p.claim, p.owner],
        single: false,
      }),
      deliverByWork: p => ({
        sql: 'update "payments" set "state" = $1, "settlement" = $2, "settled_at" = coalesce("settled_at", $3), "decided_at" = $4, "answer_expires_at" = $5 where "state" in ($6, $7) and "id" = $8 and "claim" = $9 and "owner" = $10 returning "payer"',
        parameters: ["delivered", p.settlement, p.now, p.now, p.answer_expires_at, "settling", "owed", p.id, p.claim, p.owner],
        single: true,
      }),
      deliverByChain: p => ({
        sql: 'update "payments" set "state" = $1, "settlement" = $2, "settled_at" = coalesce("settled_at", $3), "decided_at" = $4, "answer_expires_at" = $5 where "state" in ($6, $7, $8) and "id" = $9 and "claim" = $10 and "owner" = $11 returning "payer"',
        parameters: ["delivered", p.settlement, p.now, p.now, p.answer_expires_at, "settling", "released", "owed", p.id, p.claim, p.owner],
        single: true,
      }),
      oweByWork: p => ({
        sql: 'update "payments" set "state" = $1, "settlement" = $2, "settled_at" = $3, "decided_at" = $4, "reason" = $5, "answer_expires_at" = $6 where "state" in ($7) and "id" = $8 and "claim" = $9 and "owner" = $10 returning "id"',
        parameters: ["owed", p.settlement, p.now, null, null, null, "settling", p.id, p.claim, p.owner],
        single: false,
      }),
      oweByChain: p => ({
        sql: 'update "payments" set "state" = $1, "settlement" = $2, "settled_at" = $3, "decided_at" = $4, "reason" = $5, "answer_expires_at" = $6 where "state" in ($7, $8) and "id" = $9 and "claim" = $10 and "owner" = $11 returning "id"',
        parameters: ["owed", p.settlement, p.now, null, null, null, "settling", "released", p.id, p.claim, p.owner],
        single: false,
      }),
      release: p => ({
        sql: 'update "payments" set "state" = $1, "reason" = $2, "decided_at" = $3, "lease_until" = $4, "caller_until" = $5, "answer_expires_at" = $6 where "state" in ($7) and "id" = $8 and "claim" = $9 and "owner" = $10 returning "id"',
        parameters: ["released", p.reason, p.now, 0, 0, p.now, "settling", p.id, p.claim, p.owner],
        single: false,
      }),
      refund: p => ({
        sql: 'update "payments" set "state" = $1, "reason" = $2, "decided_at" = $3, "lease_until" = $4, "caller_until" = $5, "answer_expires_at" = $6, "claim" = claim + 1 where "state" in ($7) and "id" = $8 returning "id"',
        parameters: ["refunded", p.reason, p.now, 0, 0, p.now, "owed", p.id],
        single: false,
      }),
      lease: p => ({
        sql: 'update "payments" set "lease_until" = $1, "caller_until" = $2 where "id" = $3 and "claim" = $4 and "owner" = $5 and "alias_of" is null returning "id"',
        parameters: [p.lease_until, p.lease_until, p.id, p.claim, p.owner],
        single: false,
      }),
      hold: p => ({
        sql: 'update "payments" set "lease_until" = $1 where "id" = $2 and "claim" = $3 and "owner" = $4 and "alias_of" is null returning "id"',
        parameters: [p.lease_until, p.id, p.claim, p.owner],
        single: false,
      }),
      endClaim: p => ({
        sql: 'update "payments" set "lease_until" = $1, "caller_until" = $2, "runs" = $3, "claim" = claim + 1 where "state" = $4 and "id" = $5 and "claim" = $6 and "owner" = $7 returning "id"',
        parameters: [0, 0, p.runs, "claimed", p.id, p.claim, p.owner],
        single: false,
      }),
      adopt: p => ({
        sql: 'update "payments" set "claim" = $1, "owner" = $2, "lease_until" = $3, "caller_until" = case when pg_try_advisory_xact_lock_shared(8404, hashtext(owner)) then 0 else "caller_until" end where "id" = $4 and "state" <> $5 returning "id"',
        parameters: [p.claim, p.owner, p.lease_until, p.id, "claimed"],
        single: false,
      }),
      attach: p => ({
        sql: 'update "payments" set "alias_of" = $1, "lease_until" = $2, "caller_until" = $3 where "state" = $4 and "id" = $5 and "claim" = $6 and "owner" = $7 returning "id"',
        parameters: [p.alias_of, 0, 0, "claimed", p.id, p.claim, p.owner],
        single: false,
      }),
      attachable: p => ({
        sql: 'select * from "payments" where "written_at" is null and "state" in ($1, $2, $3) and "identifier" is null and ("caller_until" <= $4 or pg_try_advisory_xact_lock_shared(8404, hashtext(owner))) and ("state" <> $5 or "answer_expires_at" > $6) and "payer" = $7 and "request_hash" = $8 and "operation" = $9 order by "created_at" limit $10',
        parameters: ["settling", "owed", "delivered", p.now, "delivered", p.now, p.payer, p.request_hash, p.operation, 1],
        single: true,
      }),
      findToAttach: p => ({
        sql: 'select * from "payments" where "written_at" is null and "state" in ($1, $2, $3) and "identifier" is null and ("caller_until" <= $4 or pg_try_advisory_xact_lock_shared(8404, hashtext(owner))) and ("state" <> $5 or "answer_expires_at" > $6) and "id" = $7 for update',
        parameters: ["settling", "owed", "delivered", p.now, "delivered", p.now, p.id],
        single: true,
      }),
      written: p => ({
        sql: 'update "payments" set "written_at" = $1, "lease_until" = $2, "caller_until" = $3 where "id" = $4 and "state" = $5 and "written_at" is null returning "id"',
        parameters: [p.now, 0, 0, p.id, "delivered"],
        single: true,
      }),
      callerGone: p => ({
        sql: 'update "payments" set "caller_until" = $1 where "id" = $2 and "caller_until" > $3 and "alias_of" is null returning "id"',
        parameters: [0, p.id, 0],
        single: false,
      }),
      endLeases: () => ({
        sql: 'update "payments" set "lease_until" = $1, "caller_until" = $2 where "written_at" is null and ("lease_until" > $3 or "caller_until" > $4)',
        parameters: [0, 0, 0, 0],
        single: false,
      }),
      holdForAnswer: p => ({
        sql: 'select "payments"."state", "answers"."size" from "payments" left join "answers" on "answers"."payment" = "payments"."id" where "payments"."id" = $1 and "claim" = $2 and "owner" = $3 and "state" in ($4, $5, $6, $7) for update of "payments"',
        parameters: [p.id, p.claim, p.owner, "claimed", "settling", "released", "owed"],
        single: true,
      }),
      saveAnswer: p => ({
        sql: 'insert into "answers" ("payment", "status", "headers", "size", "saved_at", "body") values ($1, $2, $3, $4, $5, $6) on conflict ("payment") do update set "status" = "excluded"."status", "headers" = "excluded"."headers", "size" = "excluded"."size", "saved_at" = "excluded"."saved_at", "body" = "excluded"."body"',
        parameters: [p.payment, p.status, p.headers, p.size, p.saved_at, p.body],
        single: false,
      }),
      answer: p => ({
        sql: 'select "status", "headers", "body", "answer_expires_at" from "answers" inner join "payments" on "payments"."id" = "answers"."payment" where "answers"."payment" = $1',
        parameters: [p.id],
        single: true,
      }),
      dropAnswer: p => ({
        sql: 'delete from "answers" where "payment" = $1 returning "size"',
        parameters: [p.id],
        single: false,
      }),
      answerBytes: () => ({
        sql: 'select cast(coalesce(sum(size), 0) as text) as "bytes" from "answers"',
        parameters: [],
        single: false,
      }),
      dead: p => ({
        sql: 'select "p"."id" from "payments" as "p" where "p"."state" = $1 and "p"."decided_at" is null and "p"."lease_until" <= $2 and "p"."claim_height" < $3 and not exists (select "target"."id" from "payments" as "target" where "target"."id" = "p"."alias_of" and ("target"."state" in ($4, $5) or "target"."answer_expires_at" is not null)) limit $6 for update of "p" skip locked',
        parameters: ["claimed", p.now, p.height, "settling", "owed", p.limit],
        single: false,
      }),
      remove: p => ({
        sql: 'delete from "payments" where "id" = $1 and "state" = $2 returning "id"',
        parameters: [p.id, "claimed"],
        single: false,
      }),
      expired: p => ({
        sql: 'select "id" from "payments" where "answer_expires_at" is not null and "answer_expires_at" <= $1 limit $2 for update skip locked',
        parameters: [p.now, p.limit],
        single: false,
      }),
      forgetAnswer: p => ({
        sql: 'update "payments" set "answer_expires_at" = $1 where "id" = $2',
        parameters: [null, p.id],
        single: false,
      }),
      knowPayer: p => ({
        sql: 'insert into "payers" ("payer", "known", "delivered_at", "refused_at") values ($1, $2, $3, $4) on conflict ("payer") do update set "known" = $5, "delivered_at" = "excluded"."delivered_at" where "payers"."known" = $6',
        parameters: [p.payer, 1, p.now, null, 1, 0],
        single: false,
      }),
      refusePayer: p => ({
        sql: 'update "payers" set "known" = $1, "refused_at" = $2 where "payer" = $3',
        parameters: [0, p.now, p.payer],
        single: false,
      }),
      payerKnown: p => ({
        sql: 'select "known" from "payers" where "payer" = $1',
        parameters: [p.payer],
        single: false,
      }),
      audited: p => ({
        sql: 'update "payments" set "audited_at" = $1 where "id" = $2 returning "id"',
        parameters: [p.now, p.id],
        single: false,
      }),
      unaudited: p => ({
        sql: 'select * from "payments" where "settled_at" is not null and "audited_at" is null and "settled_at" <= $1 and "settled_at" >= $2 and ("settled_at" > $3 or "id" > $4) order by "settled_at", "id" limit $5',
        parameters: [p.before, p.settled_at, p.settled_at, p.id, p.limit],
        single: false,
      }),
      counts: () => ({
        sql: 'select "state", count(*) as "payments", cast(coalesce(sum(cast(amount as bigint)), 0) as text) as "amount" from "payments" where "alias_of" is null group by "state"',
        parameters: [],
        single: false,
      }),
      turnover: () => ({
        sql: 'select settled_at / 86400000 as "day", "operation", "state", count(*) as "payments", cast(coalesce(sum(cast(amount as bigint)), 0) as text) as "amount" from "payments" where "settled_at" is not null and "alias_of" is null group by settled_at / 86400000, "operation", "state" order by "day", "operation", "state"',
        parameters: [],
        single: false,
      }),
      startingWith: p => ({
        sql: 'select * from "payments" where "id" >= $1 and "id" < $2 order by "id" limit $3',
        parameters: [p.prefix, p.end, 2],
        single: false,
      }),
      answerFacts: p => ({
        sql: 'select "status", "size", "saved_at" from "answers" where "payment" = $1',
        parameters: [p.id],
        single: false,
      }),
      firstSlot: () => ({
        sql: 'select min("claim_slot") as "slot" from "payments"',
        parameters: [],
        single: false,
      }),
      ownMeta: () => ({
        sql: 'select * from "meta" where "key" in ($1, $2, $3, $4, $5)',
        parameters: ["schema", "pay_to", "network", "retired", "arriving"],
        single: false,
      }),
      identity: () => ({
        sql: 'select * from "meta" where "key" in ($1, $2, $3)',
        parameters: ["pay_to", "network", "retired"],
        single: false,
      }),
      getMeta: p => ({
        sql: 'select "value" from "meta" where "key" = $1',
        parameters: [p.key],
        single: false,
      }),
      setMeta: p => ({
        sql: 'insert into "meta" ("key", "value") values ($1, $2) on conflict ("key") do update set "value" = "excluded"."value"',
        parameters: [p.key, p.value],
        single: false,
      }),
      list: p => ({
        sql: 'select * from "payments" where "state" = coalesce($1, "state") and "payer" = coalesce($2, "payer") and "operation" = coalesce($3, "operation") and "lease_until" <= $4 and "created_at" >= $5 and ("created_at" > $6 or "id" > $7) order by "created_at" asc, "id" asc limit $8',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listNewest: p => ({
        sql: 'select * from "payments" where "state" = coalesce($1, "state") and "payer" = coalesce($2, "payer") and "operation" = coalesce($3, "operation") and "lease_until" <= $4 and "created_at" >= $5 and ("created_at" > $6 or "id" > $7) order by "created_at" desc, "id" desc limit $8',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listUndecided: p => ({
        sql: 'select * from "payments" where "state" = $1 and "decided_at" is null and "payer" = coalesce($2, "payer") and "operation" = coalesce($3, "operation") and "lease_until" <= $4 and "created_at" >= $5 and ("created_at" > $6 or "id" > $7) order by created_at + 0 asc, "id" asc limit $8',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listUndecidedNewest: p => ({
        sql: 'select * from "payments" where "state" = $1 and "decided_at" is null and "payer" = coalesce($2, "payer") and "operation" = coalesce($3, "operation") and "lease_until" <= $4 and "created_at" >= $5 and ("created_at" > $6 or "id" > $7) order by created_at + 0 desc, "id" desc limit $8',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.limit],
        single: false,
      }),
      listBooked: p => ({
        sql: 'select * from "payments" where "state" = coalesce($1, "state") and "payer" = coalesce($2, "payer") and "operation" = coalesce($3, "operation") and "lease_until" <= $4 and "created_at" >= $5 and ("created_at" > $6 or "id" > $7) and settling_at is not null and alias_of is null and created_at < $8\n          and coalesce(settled_at, created_at) >= $9 and coalesce(settled_at, created_at) < $10 order by "created_at" asc, "id" asc limit $11',
        parameters: [p.state, p.payer, p.operation, p.leased, p.created_at, p.created_at, p.id, p.to, p.from, p.to, p.limit],
        single: false,
      }),
      order: p => ({
        sql: 'select * from "orders" where "payment" = $1',
        parameters: [p.payment],
        single: false,
      }),
      orderToChange: p => ({
        sql: 'select * from "orders" where "payment" = $1 for update',
        parameters: [p.payment],
        single: false,
      }),
      openOrders: p => ({
        sql: 'select *, (select count(*) as "replies" from "replies" where "replies"."payment" = "orders"."payment" and "rejected_at" is null) as "replies" from "orders" where "payment" in (select "id" from "payments" where "state" = $1 and "decided_at" is null) and "finished_at" is null order by "created_at", "payment" limit $2',
        parameters: ["owed", p.limit],
        single: false,
      }),
      insertOrder: p => ({
        sql: 'insert into "orders" ("payment", "request", "wanted", "deadline", "attempts", "intent", "created_at", "finished_at") values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing',
        parameters: [p.payment, p.request, p.wanted, p.deadline, 1, null, p.now, null],
        single: false,
      }),
      finishOrder: p => ({
        sql: 'update "orders" set "finished_at" = $1 where "payment" = $2 and "finished_at" is null returning "payment"',
        parameters: [p.now, p.payment],
        single: false,
      }),
      finishAttempt: p => ({
        sql: 'update "orders" set "finished_at" = $1 where "payment" = $2 and "attempts" = $3 and "finished_at" is null returning "payment"',
        parameters: [p.now, p.payment, p.attempt],
        single: false,
      }),
      reopenOrder: p => ({
        sql: 'update "orders" set "attempts" = "attempts" + $1, "deadline" = $2, "finished_at" = $3 where "payment" = $4 and "finished_at" is not null returning *',
        parameters: [1, p.deadline, null, p.payment],
        single: false,
      }),
      saveIntent: p => ({
        sql: 'update "orders" set "intent" = $1 where "payment" = $2 returning "payment"',
        parameters: [p.intent, p.payment],
        single: false,
      }),
      everyReply: p => ({
        sql: 'select "reply", "respondent", "house", "rejected_at", "number" from "replies" where "payment" = $1 order by "number"',
        parameters: [p.payment],
        single: false,
      }),
      replies: p => ({
        sql: 'select * from "replies" where "payment" = $1 and "rejected_at" is null order by "number"',
        parameters: [p.payment],
        single: false,
      }),
      insertReply: p => ({
        sql: 'insert into "replies" ("payment", "reply", "number", "text", "sentiment", "respondent", "inferred", "house", "created_at", "rejected_at") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
        parameters: [p.payment, p.reply, p.number, p.text, p.sentiment, p.respondent, p.inferred, p.house, p.created_at, null],
        single: false,
      }),
      removeReply: p => ({
        sql: 'delete from "replies" where "payment" = $1 and "reply" = $2',
        parameters: [p.payment, p.reply],
        single: false,
      }),
      rejectReply: p => ({
        sql: 'update "replies" set "rejected_at" = $1 where "payment" = $2 and "reply" = $3 and "rejected_at" is null returning "reply"',
        parameters: [p.now, p.payment, p.reply],
        single: false,
      }),
    },
  },
};
