/** The methods with which a paid operation can be called, and an upstream asked. */
export const CALLED_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export type CalledMethod = (typeof CALLED_METHODS)[number];
