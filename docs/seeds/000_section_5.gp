# gnuplot 000_section_5.gp makes 000_section_5.svg.
set encoding utf8
set terminal svg size 800,600 noenhanced font 'sans,11' background 'white'
set output '000_section_5.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "input"
set format x '%.0b %BB'
set xtics rotate by -40
set multiplot layout 2,2 title "Section V: one message, by its size"
unset key
set title "paper: overall"
set format y '%.0s %cs'
plot '000_section_5.dat' index 0 using 2:4 with linespoints lt 1 title "Sarwate, one thread", \
  '000_section_5.dat' index 1 using 2:4 with linespoints lt 2 title "Parallel 1: host XOR", \
  '000_section_5.dat' index 2 using 2:4 with linespoints lt 3 title "Parallel 2: reduction", \
  '000_section_5.dat' index 3 using 2:4 with linespoints lt 4 title "Parallel 3: half-block reduction"
set title "overall"
set format y '%.0s %cs'
plot '000_section_5.dat' index 0 using 2:8 with linespoints lt 1 title "Sarwate, one thread", \
  '000_section_5.dat' index 1 using 2:8 with linespoints lt 2 title "Parallel 1: host XOR", \
  '000_section_5.dat' index 2 using 2:8 with linespoints lt 3 title "Parallel 2: reduction", \
  '000_section_5.dat' index 3 using 2:8 with linespoints lt 4 title "Parallel 3: half-block reduction", \
  '000_section_5.dat' index 4 using 2:8 with linespoints lt 5 title "Parallel 3, tables made on the device", \
  '000_section_5.dat' index 5 using 2:8 with linespoints lt 6 title "Parallel 3, without tables", \
  '000_section_5.dat' index 6 using 2:8 with linespoints lt 7 title "library, one thread", \
  '000_section_5.dat' index 7 using 2:8 with linespoints lt 8 title "library, all threads", \
  '000_section_5.dat' index 8 using 2:8 with linespoints lt 9 title "Nacre on the GPU"
set title "with copies"
set format y '%.0s %cs'
plot '000_section_5.dat' index 1 using 2:10 with linespoints lt 2 title "Parallel 1: host XOR", \
  '000_section_5.dat' index 2 using 2:10 with linespoints lt 3 title "Parallel 2: reduction", \
  '000_section_5.dat' index 3 using 2:10 with linespoints lt 4 title "Parallel 3: half-block reduction", \
  '000_section_5.dat' index 4 using 2:10 with linespoints lt 5 title "Parallel 3, tables made on the device", \
  '000_section_5.dat' index 5 using 2:10 with linespoints lt 6 title "Parallel 3, without tables", \
  '000_section_5.dat' index 8 using 2:10 with linespoints lt 9 title "Nacre on the GPU"
unset title
unset xlabel
unset logscale
unset tics
unset grid
unset border
set xrange [0:1]
set yrange [0:1]
set key center center
plot NaN with linespoints lt 1 title "Sarwate, one thread", \
  NaN with linespoints lt 2 title "Parallel 1: host XOR", \
  NaN with linespoints lt 3 title "Parallel 2: reduction", \
  NaN with linespoints lt 4 title "Parallel 3: half-block reduction", \
  NaN with linespoints lt 5 title "Parallel 3, tables made on the device", \
  NaN with linespoints lt 6 title "Parallel 3, without tables", \
  NaN with linespoints lt 7 title "library, one thread", \
  NaN with linespoints lt 8 title "library, all threads", \
  NaN with linespoints lt 9 title "Nacre on the GPU"
unset multiplot
