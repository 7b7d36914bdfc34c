/** Entry of /tool-bus.js: gives the page its tool bus, with or without a connection. */

import { installToolBus } from "./bus.ts";

installToolBus();
