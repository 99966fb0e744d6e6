/** The methods of paid operations and of requests to an upstream. */
export const CALLED_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export type CalledMethod = (typeof CALLED_METHODS)[number];
