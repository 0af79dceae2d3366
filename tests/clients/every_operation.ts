// Calls every operation with the types that openapi-typescript makes of openapi.json; prints what came back.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

const [baseUrl, token, given] = process.argv.slice(2);
if (baseUrl === undefined || token === undefined || given === undefined) {
  throw new Error("usage: every_operation BASE_URL TOKEN ARGUMENTS");
}
const known: {
  accountIds: string;
  id: string;
  syncId: string;
  subscription: string;
  month: string;
  category: Schemas["Category"];
} = JSON.parse(given);

const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function must<T>(answer: { data?: T; error?: Schemas["Error"]; response: Response }): T {
  if (answer.data === undefined) {
    throw new Error(`${answer.response.url}: ${answer.response.status} ${answer.error?.error ?? ""}`);
  }
  return answer.data;
}

const query = { accountIds: known.accountIds };

// the annotations are the point: what a client writes down must be what the description promises
const accounts: Schemas["Account"][] = must(await client.GET("/accounts")).accounts;
const page = must(await client.GET("/transactions", { params: { query: { ...query, page: 1, perPage: 20 } } }));
const purposes: (string | null | undefined)[] = page.transactions.map((each) => each.purpose);
const categories: (Schemas["Category"] | null | undefined)[] = page.transactions.map((each) => each.category);
if (purposes.length !== categories.length || accounts.length === 0) throw new Error("nothing to read");

const answers = {
  listAccounts: { accounts },
  listTransactions: page,
  searchTransactions: must(await client.GET("/transactions/search", { params: { query } })),
  sumTransactions: must(await client.GET("/transactions/totals", { params: { query } })),
  exportTransactions: must(
    await client.GET("/transactions/export", { params: { query: { ...query, format: "csv" } }, parseAs: "text" }),
  ),
  listTransactionChanges: must(await client.GET("/transactions/changes", { params: { query } })),
  listAccountChanges: must(await client.GET("/accounts/changes")),
  listTakenBackTransactions: must(await client.GET("/transactions/taken-back", { params: { query } })),
  getTransaction: must(await client.GET("/transactions/{id}", { params: { path: { id: known.id } } })),
  explainTransaction: must(await client.GET("/transactions/{id}/explanation", { params: { path: { id: known.id } } })),
  listCategories: must(await client.GET("/categories")),
  listTargets: must(await client.GET("/targets")),
  listNotices: must(await client.GET("/notices")),
  getProfile: must(await client.GET("/profile")),
  getOverview: must(await client.GET("/overview")),
  listConnections: must(await client.GET("/connections")),
  listWebhooks: must(await client.GET("/webhooks")),
  getIntegrity: must(await client.GET("/integrity", { params: { query } })),
  getBalances: must(await client.GET("/balances", { params: { query: { ...query, every: "month" } } })),
  getForecast: must(await client.GET("/forecast", { params: { query: { ...query, days: 30 } } })),
  getCashflowCategories: must(await client.GET("/cashflow/categories", { params: { query: { ...query, months: 3 } } })),
  getCashflow: must(await client.GET("/cashflow", { params: { query: { ...query, months: 3 } } })),
  listCashflowTransactions: must(
    await client.GET("/cashflow/{month}/transactions", { params: { path: { month: known.month }, query } }),
  ),
  getSnapshot: must(await client.GET("/snapshot", { params: { query } })),
  listCategoryTransactions: must(
    await client.GET("/snapshot/categories/{category}/transactions", {
      params: { path: { category: known.category }, query },
    }),
  ),
  listSubscriptions: must(await client.GET("/subscriptions", { params: { query } })),
  listSubscriptionDetails: must(await client.GET("/subscriptions/details", { params: { query } })),
  getSubscription: must(
    await client.GET("/subscriptions/{id}", { params: { path: { id: known.subscription }, query } }),
  ),
  startSync: must(await client.POST("/sync", { params: { query } })),
  getSyncJob: must(await client.GET("/sync/{syncId}", { params: { path: { syncId: known.syncId } } })),
};
console.log(JSON.stringify(answers));
