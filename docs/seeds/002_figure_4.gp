# gnuplot 002_figure_4.gp makes 002_figure_4.svg.
set encoding utf8
set terminal svg size 1200,600 noenhanced font 'sans,11' background 'white'
set output '002_figure_4.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "messages"
set format x '%.0f'
set xtics rotate by -40
set multiplot layout 2,3 title "Figure 4: payloads of messages in a parallel mode (CTR)"
unset key
set title "blocks a message: 16"
set format y '%.0s %cbit/s'
plot '002_figure_4.dat' index 0 using 2:7 with linespoints lt 1 title "one key, kernels", \
  '002_figure_4.dat' index 0 using 2:8 with linespoints lt 2 title "one key with copies", \
  '002_figure_4.dat' index 0 using 2:11 with linespoints lt 3 title "a key each, kernels", \
  '002_figure_4.dat' index 0 using 2:12 with linespoints lt 4 title "a key each with copies", \
  '002_figure_4.dat' index 0 using 2:15 with linespoints lt 5 title "plain code (tables), one thread", \
  '002_figure_4.dat' index 0 using 2:16 with linespoints lt 6 title "plain code (tables), all threads", \
  '002_figure_4.dat' index 0 using 2:17 with linespoints lt 7 title "library, one thread", \
  '002_figure_4.dat' index 0 using 2:18 with linespoints lt 8 title "library, all threads"
set title "blocks a message: 512"
set format y '%.0s %cbit/s'
plot '002_figure_4.dat' index 1 using 2:7 with linespoints lt 1 title "one key, kernels", \
  '002_figure_4.dat' index 1 using 2:8 with linespoints lt 2 title "one key with copies", \
  '002_figure_4.dat' index 1 using 2:11 with linespoints lt 3 title "a key each, kernels", \
  '002_figure_4.dat' index 1 using 2:12 with linespoints lt 4 title "a key each with copies", \
  '002_figure_4.dat' index 1 using 2:15 with linespoints lt 5 title "plain code (tables), one thread", \
  '002_figure_4.dat' index 1 using 2:16 with linespoints lt 6 title "plain code (tables), all threads", \
  '002_figure_4.dat' index 1 using 2:17 with linespoints lt 7 title "library, one thread", \
  '002_figure_4.dat' index 1 using 2:18 with linespoints lt 8 title "library, all threads"
set title "blocks a message: 2,048"
set format y '%.0s %cbit/s'
plot '002_figure_4.dat' index 2 using 2:7 with linespoints lt 1 title "one key, kernels", \
  '002_figure_4.dat' index 2 using 2:8 with linespoints lt 2 title "one key with copies", \
  '002_figure_4.dat' index 2 using 2:11 with linespoints lt 3 title "a key each, kernels", \
  '002_figure_4.dat' index 2 using 2:12 with linespoints lt 4 title "a key each with copies", \
  '002_figure_4.dat' index 2 using 2:15 with linespoints lt 5 title "plain code (tables), one thread", \
  '002_figure_4.dat' index 2 using 2:16 with linespoints lt 6 title "plain code (tables), all threads", \
  '002_figure_4.dat' index 2 using 2:17 with linespoints lt 7 title "library, one thread", \
  '002_figure_4.dat' index 2 using 2:18 with linespoints lt 8 title "library, all threads"
set title "blocks a message: 16,384"
set format y '%.0s %cbit/s'
plot '002_figure_4.dat' index 3 using 2:7 with linespoints lt 1 title "one key, kernels", \
  '002_figure_4.dat' index 3 using 2:8 with linespoints lt 2 title "one key with copies", \
  '002_figure_4.dat' index 3 using 2:11 with linespoints lt 3 title "a key each, kernels", \
  '002_figure_4.dat' index 3 using 2:12 with linespoints lt 4 title "a key each with copies", \
  '002_figure_4.dat' index 3 using 2:15 with linespoints lt 5 title "plain code (tables), one thread", \
  '002_figure_4.dat' index 3 using 2:16 with linespoints lt 6 title "plain code (tables), all threads", \
  '002_figure_4.dat' index 3 using 2:17 with linespoints lt 7 title "library, one thread", \
  '002_figure_4.dat' index 3 using 2:18 with linespoints lt 8 title "library, all threads"
unset title
unset xlabel
unset logscale
unset tics
unset grid
unset border
set xrange [0:1]
set yrange [0:1]
set key center center
plot NaN with linespoints lt 1 title "one key, kernels", \
  NaN with linespoints lt 2 title "one key with copies", \
  NaN with linespoints lt 3 title "a key each, kernels", \
  NaN with linespoints lt 4 title "a key each with copies", \
  NaN with linespoints lt 5 title "plain code (tables), one thread", \
  NaN with linespoints lt 6 title "plain code (tables), all threads", \
  NaN with linespoints lt 7 title "library, one thread", \
  NaN with linespoints lt 8 title "library, all threads"
unset multiplot
