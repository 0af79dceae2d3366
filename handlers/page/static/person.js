/** Whose money it is: the profile and the accounts, which every place needs before it asks for anything else. */
import { useRead } from "./api.js";
import { useMemo } from "./ui.js";

/**
 * `{profile, accounts, ids, byId}` once both are there: `ids` are the accounts' as the interface takes them. Accounts
 * that the person has hidden are not among them.
 */
export function usePerson() {
  const profile = useRead("/profile");
  const accounts = useRead("/accounts");
  const data = useMemo(() => {
    if (!profile.data || !accounts.data) return null;
    const all = accounts.data.accounts;
    return {
      profile: profile.data,
      accounts: all,
      ids: all.map(({ id }) => id).join(","),
      byId: new Map(all.map((account) => [account.id, account])),
    };
  }, [profile.data, accounts.data]);
  const again = () => {
    profile.again();
    accounts.again();
  };
  return { data, error: profile.error ?? accounts.error, again };
}
