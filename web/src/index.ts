/** The page at /: the dashboard. */

import { start } from "./dashboard/start.tsx";

start();
