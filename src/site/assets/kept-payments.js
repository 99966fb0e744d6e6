/**
 * The purchases at this shop that this browser stores, by operation: a payment that is signed but not yet answered, and the last answered
 * one. IndexedDB flushes a payment to disk before it is sent, and never accepts a second one, whichever tab asks.
 */

const NAME = 'coinslot';
const [UNDECIDED, ANSWERED] = ['undecided', 'answered'];

let opened;

function open() {
  return (opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      for (const store of [UNDECIDED, ANSWERED])
        request.result.createObjectStore(store, { keyPath: 'operation' });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  }));
}

/** Runs one transaction; resolves with the result of its last request once it is on disk. */
async function run(mode, work) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction([UNDECIDED, ANSWERED], mode, { durability: 'strict' });
    const request = work(name => transaction.objectStore(name));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** The payment of an operation whose outcome is not yet known. */
export const undecided = operation => run('readonly', store => store(UNDECIDED).get(operation));

/** The last answered payment of an operation. */
export const lastAnswered = operation => run('readonly', store => store(ANSWERED).get(operation));

/** Stores a payment before it is sent. @returns whether it may be sent: false if another one has no outcome yet */
export async function keep(payment) {
  try {
    await run('readwrite', store => store(UNDECIDED).add(payment));
    return true;
  } catch (error) {
    if (/** @type {DOMException} */ (error).name === 'ConstraintError') return false;
    throw error;
  }
}

/** Records what is known about a payment without an outcome. */
export const update = payment => run('readwrite', store => store(UNDECIDED).put(payment));

/** Removes a payment that can't buy anything any more. */
export const release = operation => run('readwrite', store => store(UNDECIDED).delete(operation));

/** Records the answer of the payment. @param receipt the data to show later */
export const answered = receipt =>
  run('readwrite', store => {
    store(ANSWERED).put(receipt);
    return store(UNDECIDED).delete(receipt.operation);
  });
