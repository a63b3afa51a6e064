/** The API's answers, by the names of the document; a later release may add fields. */
export {};
