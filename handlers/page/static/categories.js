/** The categories of the interface, in the order in which a person looks for them. */
export const CATEGORIES = [
  "GROCERIES", "DINING", "RENT", "INSURANCE", "TRANSPORT", "SHOPPING", "ENTERTAINMENT", "SUBSCRIPTION", "HEALTH",
  "SALARY", "SAVINGS", "TRANSFER", "OTHER",
];
