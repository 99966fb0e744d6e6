/** Why a receipt proves nothing; a sentence without its full stop. */
export class ReceiptFault extends Error {}
