/** Whose money it is: the profile and the accounts, which every place needs before it asks for anything else. */
import { useRead } from "./api.js";
import { useMemo } from "./ui.js";

/**
 * `{profile, accounts, ids, byId}` once both are there: `accounts` are those that are shown, `ids` their ids as the
 * interface takes them, `byId` all accounts, hidden ones too, since their bookings can still be opened.
 */
export function usePerson() {
  const profile = useRead("/profile");
  const accounts = useRead("/accounts");
  const data = useMemo(() => {
    if (!profile.data || !accounts.data) return null;
    const all = accounts.data.accounts;
    const shown = all.filter((account) => !account.isHidden);
    return {
      profile: profile.data,
      accounts: shown,
      all,
      ids: shown.map(({ id }) => id).join(","),
      byId: new Map(all.map((account) => [account.id, account])),
    };
  }, [profile.data, accounts.data]);
  const again = () => {
    profile.again();
    accounts.again();
  };
  return { data, error: profile.error ?? accounts.error, again };
}
